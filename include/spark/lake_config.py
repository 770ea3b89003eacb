"""Spark's settings for the jobs that read and write the lake, as data: whoever launches the JVM needs them before."""

from include.settings import Settings
from include.spark.stream_config import FORGET_SOON, JAVA_OPTIONS, LOOPBACK

LAKE_CONFIG: dict[str, str] = FORGET_SOON | {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # A table of one machine's size: with Delta's default of 50, reading its log takes longer than merging into it.
    "spark.databricks.delta.snapshotPartitions": "2",
    # The retention is a setting of ours, and may be shorter than Delta's week.
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # A commit without files still says up to where the table is complete.
    "spark.databricks.delta.skipRecordingEmptyCommits": "false",
    # VACUUM lists the table's folders in as many tasks, 10,000 by default.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
    # A check sorts and joins in many places at once: with the 16 MiB pages that Spark chooses, a task that gets its fair share
    # of a small memory can be left without a single page for the last of them ("UNABLE_TO_ACQUIRE_MEMORY").
    "spark.buffer.pageSize": "1m",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
}

# For a job that decodes events: the filter on decoded events would be pushed below the decoding, and decode each twice.
DECODE_ONCE: dict[str, str] = {
    "spark.sql.optimizer.excludedRules": (
        "org.apache.spark.sql.catalyst.optimizer.PushDownPredicates,"
        "org.apache.spark.sql.catalyst.optimizer.PushPredicateThroughNonJoin"
    ),
}


def lake_config(settings: Settings) -> dict[str, str]:
    """Return every Spark setting of a lake job but its master and jars."""
    config = LAKE_CONFIG | {
        "spark.driver.memory": f"{settings.lake.driver_memory_mb}m",
        "spark.sql.shuffle.partitions": str(settings.lake.shuffle_partitions),
    }
    if settings.lake.master.startswith("local"):
        config |= {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK}
    return config
