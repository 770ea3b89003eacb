"""Reads the checkpoint of a query: the offsets up to which it has processed its source.

Spark writes `offsets/<batch>` when it plans a batch (third line: the end offsets of the source, as JSON) and
`commits/<batch>` when the batch is done.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from include.files import PRIVATE_FILE, write_atomically
from include.position import Offsets


def offsets_json(spark: SparkSession, checkpoint: str) -> str | None:
    """Return the source offsets of the last committed batch as JSON for Spark's Kafka source; None before the first."""
    batches = [int(name) for name in child_names(spark, f"{checkpoint}/commits") if name.isdigit()]
    if not batches:
        return None
    return _offsets_of(spark, checkpoint, max(batches))


def batch_offsets(spark: SparkSession, checkpoint: str, batch: int, topic: str) -> Offsets:
    """Return partition -> end offset of a planned batch: the offset of the first record after it."""
    return _of_topic(_offsets_of(spark, checkpoint, batch), topic)


def continues_from(spark: SparkSession, checkpoint: str, topic: str, offsets: Mapping[int, int]) -> bool:
    """Return whether the last planned batch is committed and ends at exactly these offsets of a topic."""
    batches = [int(name) for name in child_names(spark, f"{checkpoint}/offsets") if name.isdigit()]
    commits = child_names(spark, f"{checkpoint}/commits")
    if not batches or str(max(batches)) not in commits:
        return False
    return batch_offsets(spark, checkpoint, max(batches), topic) == offsets


def remove_checkpoint(spark: SparkSession, checkpoint: str) -> bool:
    """Remove a checkpoint; returns whether there was one."""
    path, file_system = _path(spark, checkpoint)
    recursively = True
    return bool(file_system.delete(path, recursively))


def child_names(spark: SparkSession, location: str) -> list[str]:
    """Return the names of a folder's entries; an empty list when the folder does not exist."""
    path, file_system = _path(spark, location)
    if not file_system.exists(path):
        return []
    return [str(status.getPath().getName()) for status in file_system.listStatus(path)]


def remove_uncommitted(spark: SparkSession, checkpoint: str) -> bool:
    """Remove a checkpoint without a committed batch; returns whether there was one.

    A query that was killed before its first commit leaves state from which Spark cannot start (batch 0 needs an empty
    folder). Removing it loses nothing, because such a query starts at the first event again. The caller must hold the
    checkpoint's lock.
    """
    return offsets_json(spark, checkpoint) is None and remove_checkpoint(spark, checkpoint)


def read_text(spark: SparkSession, location: str) -> str | None:
    """Return the text of a small file, or None if it does not exist, or is empty: an earlier release was killed while writing it."""
    path, file_system = _path(spark, location)
    if not file_system.exists(path):
        return None
    # Without a Spark job, whose first planning takes a second.
    source = file_system.open(path)
    try:
        text = str(spark._jvm.org.apache.commons.io.IOUtils.toString(source, "UTF-8"))  # type: ignore[union-attr]  # noqa: SLF001 - as in _path
    finally:
        source.close()
    return text or None


def write_text(spark: SparkSession, location: str, text: str) -> None:
    """Write a small file, replacing an existing one: atomically on a local disk, as object stores do."""
    path, file_system = _path(spark, location)
    if file_system.getUri().getScheme() == "file":
        file = Path(path.toUri().getPath())
        # Hadoop's checksum of the file's old content. Without one, it reads the file as it is.
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        write_atomically(file, text, PRIVATE_FILE)
        return
    overwrite = True
    stream = file_system.create(path, overwrite)
    stream.write(bytearray(text.encode()))
    stream.close()


def _path(spark: SparkSession, location: str) -> tuple[Any, Any]:
    """Return Hadoop's path and file system of a location."""
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public access to Hadoop's file systems
    path = jvm.org.apache.hadoop.fs.Path(location)
    return path, path.getFileSystem(spark._jsc.hadoopConfiguration())  # noqa: SLF001


def committed_offsets(spark: SparkSession, checkpoint: str, topic: str) -> Offsets:
    """Return partition -> offset of the first unprocessed record; empty before the first committed batch."""
    text = offsets_json(spark, checkpoint)
    return Offsets() if text is None else _of_topic(text, topic)


def _offsets_of(spark: SparkSession, checkpoint: str, batch: int) -> str:
    location = f"{checkpoint}/offsets/{batch}"
    text = read_text(spark, location)
    if text is None:
        raise FileNotFoundError(location)
    return text.splitlines()[2]


def _of_topic(text: str, topic: str) -> Offsets:
    by_topic: dict[str, dict[str, int]] = json.loads(text)
    return Offsets.from_json(by_topic.get(topic, {}))
