"""No partition of a replica has lost a large share of its keys."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import col

from include.quality.check import ExpectationResult
from spark_jobs.quality.checked_records import CheckedRecords
from spark_jobs.quality.rules import AtMost, Expectation
from spark_jobs.quality.validation import validate

WHOLE_PARTITIONS = "no partition is truncated"
# A partition that lacks this share of its keys, and more than one key, counts as truncated.
TRUNCATED_SHARE = 0.1
EXPECTATION = Expectation(WHOLE_PARTITIONS, AtMost("missing_share", TRUNCATED_SHARE, below=True))


def of_stores(check: CheckedRecords) -> list[ExpectationResult]:
    """Return a result for each store, over the partitions of its replicas."""
    partitions = missing_shares(check.comparison).toPandas()
    results = []
    for read in check.readings:
        own = partitions[partitions["place"].isin(read.replica_names)]
        results += validate(read.store.name, own, [EXPECTATION], ("place", "partition"))
    return results


def missing_shares(comparison: DataFrame) -> DataFrame:
    """Return place, partition, keys (the required number), missing, missing_share (0 if only one is missing)."""
    required = comparison.where(col("required_offset").isNotNull())
    counted = required.groupBy("place", col("partition").cast("string").alias("partition")).agg(
        F.count("*").alias("keys"), F.count_if(col("stored").isNull()).alias("missing")
    )
    share = F.when(col("missing") > 1, col("missing") / col("keys")).otherwise(0.0)
    return counted.withColumn("missing_share", share)
