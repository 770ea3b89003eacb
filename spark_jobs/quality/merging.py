"""Merges verified records with the fold of the events since."""

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import col, lit

from include.declarations.event_types.event_columns import OFFSET
from include.position import SOURCE_OFFSET
from include.quality.check import FullCheckNeededError
from spark_jobs.folding.expressions.columns import with_short_names
from spark_jobs.folding.fold_query import folded, merge_columns, record_check
from spark_jobs.folding.written_states import FAILED, aggregated_states, has_failed
from spark_jobs.quality.source_log import MODEL_KEY
from spark_jobs.quality.target import Target

RECORD_KEY, FOLDED, GROUP, POSITION = (
    "record:record_key",
    "record:folded",
    "record:group",
    "record:position",
)
FAILED_PART = "record:failed_part"


def merged_records(target: Target, based: DataFrame, base: DataFrame, events: DataFrame) -> DataFrame:
    """Return key, position, record, and FAILED if a state can fail: each verified record merged with the events up to the position.

    based: see `create_based`. base: the verified records. events: those since, with their keys.
    """
    model, revision = target.model, target.version.fold_revision
    records = based.select(
        col("key").alias(RECORD_KEY), col("position").alias(POSITION), col("folded_up_to").alias(FOLDED)
    )
    is_new = (col(OFFSET) > F.coalesce(FOLDED, lit(-1))) & (col(OFFSET) <= col(POSITION))
    of_record = (col(MODEL_KEY) == col(RECORD_KEY)) & is_new
    events = with_short_names(events, model.event_schemas).join(records, of_record)
    new = folded(model, revision, events.groupBy(col(MODEL_KEY).alias(GROUP), POSITION), is_partial=True)
    of_part = [FAILED] if FAILED in new.columns else []
    new = new.select(col(GROUP).alias("key"), POSITION, target.types.record_of(new).alias("record"), *of_part)
    new = new.select("key", POSITION, "record.*", *of_part)
    is_base = (col("key") == col(RECORD_KEY)) & (col(SOURCE_OFFSET.name) == col(FOLDED))
    old = base.join(records, is_base).select("key", POSITION, *(col(name) for name in target.types.fields))
    parts = new.unionByName(old, allowMissingColumns=True)
    merged = aggregated_states(
        parts.groupBy(col("key").alias(GROUP), POSITION),
        merge_columns(model, revision),
        [F.max(name).alias(FAILED_PART) for name in of_part],
        # Any field of a merged state may be null.
        check=replace(record_check(model, revision), required=frozenset()),
    )
    failures = [name for name in (FAILED, FAILED_PART) if name in merged.columns]
    failed = [F.coalesce(*failures).alias(FAILED)] if failures else []
    record = target.types.record_of(merged).alias("replayed")
    return merged.select(col(GROUP).alias("key"), col(POSITION).alias("position"), record, *failed)


def require_records(merged: DataFrame) -> None:
    """Raise FullCheckNeededError for a state that cannot be written: without its record, the next check has nothing to merge."""
    if FAILED in merged.columns and (failed := merged.where(has_failed(merged)).count()):
        raise FullCheckNeededError(f"keys have states that cannot be written ({failed:,})")
