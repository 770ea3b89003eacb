"""The states of the live version, as of the same events as those of a candidate."""

import logging
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from include.declarations.read_model import ReadModel
from include.position import Offsets
from include.settings import Settings
from include.versions.version_record import Version
from spark_jobs.folding.fold_query import fold
from spark_jobs.folding.lifetimes import unexpired
from spark_jobs.folding.replay import IdsOf, replayed_events
from spark_jobs.lake.lake_table import LakeTable
from spark_jobs.lake.live_lake import lake_table

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class LiveFold:
    """The states of a live version, with the columns of the lake's table; None if they cannot be had. note: a sentence on them, or empty."""

    frame: DataFrame | None
    note: str = ""


def replayed_states(
    spark: SparkSession,
    settings: Settings,
    table: LakeTable,
    version: Version,
    until: Offsets,
    ids_of: IdsOf,
) -> DataFrame:
    """Fold the log up to these end offsets as a version does; the columns are those of the table."""
    model = table.model.reading(version.source_topic, version.starts)
    states = fold(
        model,
        version.fold_revision,
        replayed_events(spark, settings, model, until, revision=version.fold_revision, ids_of=ids_of),
    )
    return table.with_all_columns(unexpired(model, states, settings.stream))


def stored_states(
    spark: SparkSession, lake_root: str, retention_h: float, model: ReadModel, version: Version, reason: str
) -> LiveFold:
    """Return the states in `lake/<model>`, for a live version that cannot be folded again."""
    reason = reason.rstrip(".")
    table = lake_table(spark, lake_root, retention_h, model)
    newest = table.newest_tag()
    if newest is None or newest.tag.version != version.number:
        note = f"v{version.number} cannot be folded again, because {reason}; and lake/{model.name} does not contain it."
        return LiveFold(None, f"{note} Every key counts as an added one.")
    LOG.info("%s v%d cannot be folded again, because %s", model.name, version.number, reason)
    return LiveFold(
        table.with_all_columns(spark.read.format("delta").load(table.path)),
        f"v{version.number} cannot be folded again, because {reason}. Its states are those of lake/{model.name}, so that events after the "
        "last compaction are differences, too.",
    )
