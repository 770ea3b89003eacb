"""The first event that is missing in a table. Its rows may be further than what its newest commit is known to contain."""

from confluent_kafka import Consumer
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import col

from include.lake.tables import KEY_COLUMN
from include.position import Offsets
from include.quality.log_bounds import lost_partitions
from include.spark.lake_config import DECODE_ONCE
from spark_jobs.folding.replay import replayed_events
from spark_jobs.lake.lake_table import session_settings
from spark_jobs.quality.stores.base import Target


def first_missing(target: Target, consumer: Consumer, rows: DataFrame, since: Offsets) -> Offsets:
    """Return the offset of the first event of the check in each partition that is in none of these rows, where there is one.

    Args:
        target: what is checked; the events below its cut are looked at.
        consumer: reads where the log begins.
        rows: a table's, with key and source_offset: a row has the events of its key up to there.
        since: everything below is known to be in the rows.
    """
    spark, model = target.spark, target.model
    lost = lost_partitions(consumer, model.source_topic, len(target.cut))
    since = Offsets({p: max(since.of(p), lost.get(p, 0)) for p in target.cut})
    held = rows.select(col(KEY_COLUMN).alias("held_key"), col("source_offset").alias("held_offset"))
    with session_settings(spark, DECODE_ONCE):
        events = replayed_events(spark, target.settings, model, target.cut, since)
        found = (
            events.select(model.key().cast("string").alias("model_key"), "partition", "offset")
            .join(held, col("model_key") == col("held_key"), "left")
            .where(col("held_offset").isNull() | (col("held_offset") < col("offset")))
            .groupBy("partition")
            .agg(F.min("offset").alias("first"))
            .collect()
        )
    return Offsets({row.partition: row["first"] for row in found})
