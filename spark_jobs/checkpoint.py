"""What a query's checkpoint says: up to where its source is folded in.

Layout as Spark writes it: `offsets/<batch>` (third line: the source's end offsets of the batch, as JSON) and
`commits/<batch>`, there once the batch is done.
"""

import json
from typing import Any

from pyspark.sql import SparkSession


def offsets_json(spark: SparkSession, checkpoint: str) -> str | None:
    """Return the source offsets of the last committed batch as Spark's Kafka source wants them, or None before the first."""
    jvm: Any = spark._jvm  # noqa: SLF001 - the only way to Hadoop's file systems
    commits = jvm.org.apache.hadoop.fs.Path(f"{checkpoint}/commits")
    file_system = commits.getFileSystem(spark._jsc.hadoopConfiguration())  # noqa: SLF001
    if not file_system.exists(commits):
        return None
    names = [status.getPath().getName() for status in file_system.listStatus(commits)]
    batches = [int(name) for name in names if name.isdigit()]
    if not batches:
        return None
    text = spark.read.text(f"{checkpoint}/offsets/{max(batches)}", wholetext=True).first()
    return None if text is None else str(text.value).splitlines()[2]


def committed_offsets(spark: SparkSession, checkpoint: str, topic: str) -> dict[int, int]:
    """Return partition -> offset of the first record not folded in; empty before the first committed batch."""
    text = offsets_json(spark, checkpoint)
    if text is None:
        return {}
    by_topic: dict[str, dict[str, int]] = json.loads(text)
    return {int(partition): offset for partition, offset in by_topic.get(topic, {}).items()}
