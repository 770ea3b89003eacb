"""Finds the first events that a table lacks. Its rows may contain more events than its newest tag guarantees."""

from confluent_kafka import Consumer
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.functions import col

from include.declarations.event_types.event_columns import OFFSET, PARTITION
from include.declarations.state_names import KEY_COLUMN
from include.position import Offsets
from include.quality.log_bounds import lost_partitions
from include.spark.lake_config import DECODE_ONCE
from spark_jobs.folding.replay import IdsOf, replayed_events, with_needed_schema_ids
from spark_jobs.quality.stores.base import Target
from spark_jobs.runtime.session import session_settings


def first_missing(target: Target, consumer: Consumer, rows: DataFrame, since: Offsets) -> Offsets:
    """Return, for each partition with missing events, the offset of the first event that is in none of these rows.

    Args:
        target: the target of the check; only events below its cut are considered.
        consumer: reads the beginning offsets of the log.
        rows: rows of a table with key and source_offset; a row contains its key's events up to that offset.
        since: offsets below which all events are known to be in the rows.
    """
    spark, model = target.spark, target.model
    lost = lost_partitions(consumer, model.source_topic, len(target.cut))
    since = Offsets({p: max(since.of(p), lost.get(p, 0)) for p in target.cut})
    stored = rows.select(col(KEY_COLUMN).alias("stored_key"), col("source_offset").alias("stored_offset"))

    def read(ids_of: IdsOf) -> list[Row]:
        events = replayed_events(
            spark,
            target.settings,
            model,
            target.cut,
            since,
            revision=target.version.fold_revision,
            ids_of=ids_of,
        )
        return (
            events.select(
                model.key().cast("string").alias("model_key"),
                col(PARTITION).alias("partition"),
                col(OFFSET).alias("offset"),
            )
            .join(stored, col("model_key") == col("stored_key"), "left")
            .where(col("stored_offset").isNull() | (col("stored_offset") < col("offset")))
            .groupBy("partition")
            .agg(F.min("offset").alias("first"))
            .collect()
        )

    with session_settings(spark, DECODE_ONCE):
        found = with_needed_schema_ids(read)
    return Offsets({row.partition: row["first"] for row in found})
