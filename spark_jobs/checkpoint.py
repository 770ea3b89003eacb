"""What a query's checkpoint says: up to where its source is folded in.

Layout as Spark writes it: `offsets/<batch>` (third line: the source's end offsets of the batch, as JSON) and
`commits/<batch>`, there once the batch is done.
"""

import json
from typing import Any

from pyspark.sql import SparkSession


def offsets_json(spark: SparkSession, checkpoint: str) -> str | None:
    """Return the source offsets of the last committed batch as Spark's Kafka source wants them, or None before the first."""
    commits, file_system = _path(spark, f"{checkpoint}/commits")
    if not file_system.exists(commits):
        return None
    names = [status.getPath().getName() for status in file_system.listStatus(commits)]
    batches = [int(name) for name in names if name.isdigit()]
    if not batches:
        return None
    text = spark.read.text(f"{checkpoint}/offsets/{max(batches)}", wholetext=True).first()
    return None if text is None else str(text.value).splitlines()[2]


def remove_uncommitted(spark: SparkSession, checkpoint: str) -> bool:
    """Remove a checkpoint that has no committed batch; returns whether there was one.

    A query that was killed before its first commit leaves state behind that Spark refuses to start from (batch 0 wants an
    empty folder). Nothing is lost with it: such a query begins at the first event again. Call it under the driver's lock.
    """
    if offsets_json(spark, checkpoint) is not None:
        return False
    path, file_system = _path(spark, checkpoint)
    recursively = True
    return bool(file_system.delete(path, recursively))


def _path(spark: SparkSession, location: str) -> tuple[Any, Any]:
    """Return Hadoop's path of a location, and the file system that it is on."""
    jvm: Any = spark._jvm  # noqa: SLF001 - the only way to Hadoop's file systems
    path = jvm.org.apache.hadoop.fs.Path(location)
    return path, path.getFileSystem(spark._jsc.hadoopConfiguration())  # noqa: SLF001


def committed_offsets(spark: SparkSession, checkpoint: str, topic: str) -> dict[int, int]:
    """Return partition -> offset of the first record not folded in; empty before the first committed batch."""
    text = offsets_json(spark, checkpoint)
    if text is None:
        return {}
    by_topic: dict[str, dict[str, int]] = json.loads(text)
    return {int(partition): offset for partition, offset in by_topic.get(topic, {}).items()}
