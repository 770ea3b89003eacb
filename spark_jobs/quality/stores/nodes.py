"""The stores of the query nodes, read through their API: each copy of a partition on a node is a replica.

A partition is read as one stream of records in the form in which the node stores them, while its records change. A record is compared
as of its own position; a key that appears behind the stream, or changes after it was read, is read again individually.
"""

import json
import os
import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import murmur2
from pyspark.sql import DataFrame
from pyspark.sql.functions import coalesce, col, concat, format_string, from_json, lit, raise_error
from pyspark.sql.types import StringType, StructField, StructType

from include.declarations.read_model import KEY_COLUMN
from include.nodes.field_names import camel, snake
from include.nodes.record_client import PartitionReplica, ReplicaUnavailableError
from include.nodes.record_stream import RECORD_SCHEMA, stream_records
from include.position import POSITION_COLUMNS
from include.replay.check.readings import PLACE, Reading
from include.replay.check.stores.node_replicas import ANSWERS, ANSWERS_OF_BATCH, READERS, NodeReplicas
from spark_jobs.lake.changelog_batch import OFFSET
from spark_jobs.quality.session import CheckSession
from spark_jobs.quality.stores.base import StoredFrames, of_pairs
from spark_jobs.quality.stores.changelog import changelog_of
from spark_jobs.quality.target import Target

# Up to this many keys are read again one by one; for more, the partitions are listed again.
SINGLE_KEYS = 1_000
# For more keys than this, listing all records takes less time than looking up each.
LOOKED_UP_KEYS = 5_000
# An unreadable record must not look like a missing one.
FAILFAST = {"mode": "FAILFAST"}
# In the files of records that were read: about 10 MB.
ROW_GROUP = 65_536


class NodesStore(NodeReplicas):
    """The query nodes; adds their records as frames."""

    _target: Target

    def __init__(self, session: CheckSession, target: Target, stored: StoredFrames) -> None:
        super().__init__(target)
        self._session = session
        self._stored = stored
        self._spark = session.spark
        self._spool = spool_dir()
        self._listings = 0

    def read(self) -> Reading:
        """Add the records of every replica."""
        found, keys = self._replicas, self._stored.keys
        if keys is None or self._stored.number > LOOKED_UP_KEYS:
            records, faults = self._list(found.ready)
        else:
            by_partition: dict[int, list[str]] = {}
            for row in keys.collect():
                by_partition.setdefault(self._partition(row.key), []).append(row.key)
            records, faults = self._look_up(
                [(replica, key) for replica in found.ready for key in by_partition.get(replica.partition, ())]
            )
        self._stored.add(self.name, self._stored.compared(records))
        return self._reading(faults)

    def current(self, late: DataFrame) -> DataFrame:
        """Read the records of these keys one by one, or list their replicas again if there are many keys."""
        by_name = {replica.name: replica for replica in self._replicas.ready}
        mine = late.where(col("place").isin(list(by_name)))
        rows = mine.limit(SINGLE_KEYS + 1).collect()
        if len(rows) > SINGLE_KEYS:
            again = [by_name[row.place] for row in mine.select("place").distinct().collect()]
            records, _ = self._list(again)
            return of_pairs(records, mine)
        # A record that cannot be read was missing or behind before, and remains so.
        records, _ = self._look_up([(by_name[row.place], row.key) for row in rows])
        return records

    def close(self) -> None:
        """Close the client and remove the spooled records."""
        super().close()
        shutil.rmtree(self._spool, ignore_errors=True)

    def _look_up(self, wanted: Sequence[tuple[PartitionReplica, str]]) -> tuple[DataFrame, list[str]]:
        """Return the records of some keys, each on one replica, and a fault for each replica that could not be read."""
        deadline_s = self._deadline_s()
        faults: dict[str, str] = {}

        def read_record(one: tuple[PartitionReplica, str]) -> str | None:
            replica, key = one
            if replica.name in faults:
                return None
            try:
                record = self._client.record(replica, key, deadline_s)
            except ReplicaUnavailableError as error:
                faults[replica.name] = str(error)
                return None
            return record and f'{{"place":{json.dumps(replica.name)},"record":{record}}}'

        with ThreadPoolExecutor(READERS) as readers:
            lines = [(line,) for line in readers.map(read_record, wanted) if line]
        texts = self._spark.createDataFrame(lines, "value string")
        parsed = texts.select(from_json("value", self._type(), FAILFAST).alias("read"))
        records = parsed.select(
            col("read.place").alias(PLACE),
            "read.record.key",
            "read.record.state.*",
            *(
                coalesce(f"read.record.{camel(name)}", f"read.record.{name}").alias(name)
                for name in POSITION_COLUMNS
            ),
        )
        return records, list(faults.values())

    def _list(self, replicas: Sequence[PartitionReplica]) -> tuple[DataFrame, list[str]]:
        """Return the records of some replicas, and a fault for each replica that could not be read."""
        self._listings += 1
        folder = self._spool / str(self._listings)
        folder.mkdir(parents=True)
        faults: list[str] = []
        answered: list[tuple[PartitionReplica, str]] = []

        def spool(number: int) -> None:
            replica = replicas[number]
            try:
                keys = self._spool_records(folder / f"{number}.parquet", replica)
                answered.extend((replica, key) for key in keys)
            except ReplicaUnavailableError as error:
                faults.append(str(error))

        with ThreadPoolExecutor(READERS) as readers:
            list(readers.map(spool, range(len(replicas))))
        looked_up, failed = self._look_up(answered)
        return self._decoded(self._spark.read.parquet(str(folder))).unionByName(looked_up), faults + failed

    def _spool_records(self, path: Path, replica: PartitionReplica) -> list[str]:
        """Write the records of a partition to a file; returns the keys whose records are left out, because they are looked up."""
        schema = RECORD_SCHEMA.append(pa.field(PLACE, pa.dictionary(pa.int32(), pa.string())))
        model, number = self._target.model.name, self._target.version.number
        left_out: list[str] = []
        with pq.ParquetWriter(path, schema) as writer:
            for batch in stream_records(
                replica, model, number, self._stored.sample, self._wait_s, self._client.tls
            ):
                chosen = random.sample(
                    range(len(batch)), min(ANSWERS - len(left_out), ANSWERS_OF_BATCH, len(batch))
                )
                left_out += batch.column("key").take(pa.array(chosen, pa.int64())).to_pylist()
                stored = batch.filter(pa.array([row not in chosen for row in range(len(batch))], pa.bool_()))
                # With a type: no record is left of a batch of a few.
                place = pa.array([replica.name] * len(stored), pa.string()).dictionary_encode()
                writer.write_batch(stored.append_column(schema.field(PLACE), place), ROW_GROUP)
        return left_out

    def _decoded(self, stored: DataFrame) -> DataFrame:
        """Return records in the form in which a node stores them as those of `Reading.records`."""
        rows = changelog_of(self._session, self._target).decoded(stored, PLACE)
        where = format_string("A record of %s, at changelog offset %d,", col(PLACE), col(OFFSET))
        unreadable = raise_error(concat(where, lit(" is not a state record of its version.")))
        read = rows.withColumn(KEY_COLUMN, coalesce(KEY_COLUMN, unreadable))
        return self._target.types.stored(col(PLACE), read)

    def _type(self) -> StructType:
        """The type of a record as a node answers it in JSON, with the name of the replica."""
        types = self._target.types
        record = StructType(
            [
                StructField("key", StringType()),
                StructField("state", types.state),
                # A node of an earlier release answers with the names in snake_case.
                *(
                    StructField(style(name), types.position[name])
                    for name in POSITION_COLUMNS
                    for style in (camel, snake)
                ),
            ]
        )
        return StructType([StructField("place", StringType()), StructField("record", record)])

    def _partition(self, key: str) -> int:
        return int(murmur2(key.encode(), len(self._target.cut)))


def spool_dir() -> Path:
    """Return a new path for this check in the scratch directory that its job was launched with; the folder is not created.

    If a job is killed, the next one removes that directory (include.scratch.scratch_dir).
    """
    scratch = os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir()
    return Path(scratch) / f"quality-spool-{time.time_ns()}"
