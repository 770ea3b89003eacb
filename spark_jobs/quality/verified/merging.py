"""Merges verified records with the fold of the events since."""

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import col, lit

from include.declarations.event_types.event_columns import OFFSET
from include.position import POSITION_COLUMNS, SOURCE_OFFSET
from include.quality.check import FullCheckNeededError
from spark_jobs.folding.expressions.columns import with_short_names
from spark_jobs.folding.fold_query import folded, merge_columns, record_check
from spark_jobs.folding.written_states import FAILED, aggregated_states, has_failed
from spark_jobs.quality.log_replay import POSITION
from spark_jobs.quality.source_log import MODEL_KEY
from spark_jobs.quality.target import Target

RECORD_KEY, FOLDED, GROUP = "record:record_key", "record:folded", "record:group"
FAILED_PART = "record:failed_part"


def merged_records(target: Target, based: DataFrame, events: DataFrame) -> DataFrame:
    """Return key, position, record, and FAILED if a state can fail: each base merged with the events up to the position.

    based: key, position, and base, the verified record; null if there is none. events: those since, with their keys.
    """
    model, revision = target.model, target.version.fold_revision
    folded_up_to = col(f"base.{SOURCE_OFFSET.name}").alias(FOLDED)
    records = based.select(col("key").alias(RECORD_KEY), col("position").alias(POSITION), folded_up_to)
    is_new = (col(OFFSET) > F.coalesce(FOLDED, lit(-1))) & (col(OFFSET) <= col(POSITION))
    of_record = (col(MODEL_KEY) == col(RECORD_KEY)) & is_new
    events = with_short_names(events, model.event_schemas).join(records, of_record)
    new = folded(model, revision, events.groupBy(col(MODEL_KEY).alias(GROUP), POSITION), is_partial=True)
    fields = target.types.fields
    of_part = [FAILED] if FAILED in new.columns else []
    new = new.select(col(GROUP).alias("key"), POSITION, target.types.record_of(new).alias("record"), *of_part)
    new = new.select(
        "key", POSITION, "record.state.*", *(f"record.{name}" for name in POSITION_COLUMNS), *of_part
    )
    old = based.where(col("base").isNotNull()).select(
        "key", col("position").alias(POSITION), *(f"base.{name}" for name in fields)
    )
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
    record = target.types.record_of(merged).alias("record")
    return merged.select(col(GROUP).alias("key"), col(POSITION).alias("position"), record, *failed)


def require_records(merged: DataFrame) -> None:
    """Raise FullCheckNeededError for a state that cannot be written: without its record, the next check has nothing to merge."""
    if FAILED in merged.columns and (failed := merged.where(has_failed(merged)).count()):
        raise FullCheckNeededError(f"keys have states that cannot be written ({failed:,})")
