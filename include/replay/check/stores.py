"""The stores of a check with DuckDB: each adds its records to the table `stored`, and names its replicas."""

import random
import threading
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

import duckdb
import pyarrow as pa
from confluent_kafka import murmur2

from include.kafka.log_reading import log_consumer
from include.kafka.topic_state import topic_state
from include.lake.sql_tables import quoted
from include.lake.tagged_table import TaggedTable, newest_tag
from include.lake.tags import CommitTag
from include.nodes.node_url import PeerRule
from include.nodes.record_client import NodeClient, PartitionReplica, ReplicaUnavailableError
from include.nodes.record_requests import KeySample
from include.nodes.record_stream import stream_records
from include.position import EVENT_COUNT, Offsets
from include.quality.check import QualityError, StoreName
from include.replay.check.comparison import Replica
from include.replay.check.state_records import PLACE, StateRecords
from include.replay.check.target import CheckTarget
from include.replay.log_events import record_batches
from include.replay.other_engine import OtherEngineError

# Few, because the nodes also serve lookups.
READERS = 4
# Of each replica, the records of some keys are read as applications read them: the node decodes them, and answers in JSON.
ANSWERS = 100
ANSWERS_OF_BATCH = 4
CHANGES = "changelog_records"
TABLE = "delta_table"


@dataclass(frozen=True)
class Reading:
    """What a store has been read as.

    faults: reasons why the whole store cannot be right. notes: how it was read, for the report. table_version: of a Delta table, the
    version that was read.
    """

    replicas: tuple[Replica, ...]
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    table_version: int | None = None


class Store(Protocol):
    """A store of state records."""

    name: StoreName
    may_catch_up: bool

    def key_counts(self) -> dict[str, int]:
        """Return replica -> its current number of keys, in the sample or not."""

    def read(self) -> Reading:
        """Add the records of the sample to `stored`; raises QualityError when the store cannot be read."""

    def reread(self, places: Collection[str]) -> None:
        """Replace the records of some replicas by their current ones."""

    def close(self) -> None:
        """Release the resources of the store."""


class StoredRecords:
    """The table `stored`, to which threads add rows.

    sample: the keys that are compared. condition: on a key, in SQL, of the rows that are added: those of the sample, or others. keys: the
    keys that are compared, if they are few; None: those of the condition.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, records: StateRecords) -> None:
        self.connection = connection
        self.records = records
        self.sample = KeySample()
        self.condition = "true"
        self.keys: Collection[str] | None = None
        self._lock = threading.Lock()
        connection.register("stored_batch", records.schema.empty_table())
        connection.execute("CREATE TABLE stored AS SELECT * FROM stored_batch")
        connection.unregister("stored_batch")

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows with the schema of the records."""
        with self._lock:
            self.connection.register("stored_batch", batch)
            self.connection.execute(f"INSERT INTO stored SELECT * FROM stored_batch WHERE {self.condition}")
            self.connection.unregister("stored_batch")

    def remove(self, places: Collection[str]) -> None:
        """Remove the rows of some replicas."""
        self.connection.execute("DELETE FROM stored WHERE place IN (SELECT unnest(?))", [list(places)])


class DeltaStore:
    """A Delta table whose commits carry a tag: one version of it."""

    may_catch_up = False

    def __init__(self, name: StoreName, target: CheckTarget, path: str, stored: StoredRecords) -> None:
        self.name = name
        self._target = target
        self._path = path
        self._stored = stored
        table = TaggedTable.open(path, CommitTag.from_json)
        newest = None if table is None else newest_tag(table.history)
        if newest is None:
            raise OtherEngineError(f"{path} has no commit with a tag")
        self.tag, self._version = newest.tag, newest.delta_version

    def key_counts(self) -> dict[str, int]:
        """Return the number of rows."""
        found = self._stored.connection.execute(f"SELECT count(*) FROM {self.table}").fetchone()
        assert found is not None  # noqa: S101 - an aggregate without groups has one row
        return {str(self.name): int(found[0])}

    def read(self) -> Reading:
        """Add the table's rows, whose cut is in its tag."""
        stored, place = self._stored, str(self.name)
        columns = ", ".join(f'"{one}"' for one in stored.records.schema.names if one != PLACE)
        stored.connection.execute(
            f"INSERT INTO stored BY NAME SELECT {quoted(place)} AS place, {columns} FROM {self.table} WHERE {stored.condition}"
        )
        faults: tuple[str, ...] = ()
        if self.tag.version != self._target.version.number:
            mismatch = (
                f"the {self.name} holds version {self.tag.version}, not version {self._target.version.number}"
            )
            faults = (f"{mismatch}: it has not been promoted yet, or was rolled back",)
        notes = (f"{self.name}: read as of version {self._version} of the Delta table",)
        return Reading((Replica(place, place, self.tag.complete_up_to),), faults, notes, self._version)

    def reread(self, places: Collection[str]) -> None:
        """Do nothing: the check reads one version of the table."""

    def close(self) -> None:
        """Do nothing: the store has no resources."""

    @property
    def table(self) -> str:
        """The version of the table in SQL."""
        name = f"{TABLE}_{self.name}"
        attached = self._stored.connection.execute(
            "SELECT count(*) FROM duckdb_databases() WHERE database_name = ?", [name]
        ).fetchone()
        if attached == (0,):
            self._stored.connection.execute(
                f'ATTACH {quoted(self._path)} AS "{name}" (TYPE delta, READ_ONLY)'
            )
        return f'(SELECT * FROM "{name}" AT (VERSION => {self._version}))'


class ChangelogStore:
    """A version's changelog: the newest record of each key.

    cut: for a version that the driver folds, the source's end, at once or within the check's wait; for one that is being built, the
    offsets that are committed in its checkpoint.
    """

    name = StoreName.CHANGELOG

    def __init__(self, target: CheckTarget, stored: StoredRecords, cut: Offsets) -> None:
        self._target = target
        self._stored = stored
        self._cut = cut
        self.may_catch_up = target.version.is_active

    def key_counts(self) -> dict[str, int]:
        """Return the number of keys without deleted ones; reads the topic."""
        self._read()
        found = self._stored.connection.execute(f"SELECT count(*) FROM ({NEWEST})").fetchone()
        assert found is not None  # noqa: S101 - an aggregate without groups has one row
        return {str(self.name): int(found[0])}

    def read(self) -> Reading:
        """Add the newest record of each key up to the topic's current end."""
        self._add()
        return Reading((Replica(str(self.name), str(self.name), self._cut),))

    def reread(self, places: Collection[str]) -> None:
        """Replace all records."""
        if str(self.name) in places:
            self._stored.remove([str(self.name)])
            self._add()

    def close(self) -> None:
        """Do nothing: the store has no resources."""

    def _add(self) -> None:
        self._read()
        fields = ", ".join(f'record."{field.name}"' for field in self._stored.records.fields)
        self._stored.connection.execute(
            f"INSERT INTO stored SELECT {quoted(self.name)}, key, {fields} FROM ({NEWEST}) WHERE {self._stored.condition}"
        )

    def _read(self) -> None:
        """Read the topic into a table: key, offset, and the record, null for a deletion."""
        connection, records = self._stored.connection, self._stored.records
        schema = pa.schema([("key", pa.string()), ("offset", pa.int64()), ("record", records.fields)])
        connection.register("changes", schema.empty_table())
        connection.execute(f"CREATE OR REPLACE TABLE {CHANGES} AS SELECT * FROM changes")
        servers, topic = self._target.settings.kafka.bootstrap_servers, self._target.version.changelog_topic
        state = topic_state(servers, topic)
        if state is None:
            raise QualityError(f"The changelog {topic} does not exist.")
        ranges = {partition: (state.starts.of(partition), end) for partition, end in state.ends.items()}
        with closing(log_consumer(servers)) as consumer:
            for found in record_batches(consumer, topic, ranges):
                keys = pa.array(found.keys, pa.binary()).cast(pa.string())
                columns = [keys, pa.array(found.offsets, pa.int64()), records.decoded(found.values)]
                connection.register("changes", pa.RecordBatch.from_arrays(columns, schema=schema))
                connection.execute(f"INSERT INTO {CHANGES} SELECT * FROM changes")
        connection.unregister("changes")


# After a kill, the driver repeats records: the newest one is that with most events since the last deletion.
NEWEST = f"""SELECT key, arg_max(record, (record.{EVENT_COUNT.name}, "offset")) AS record
FROM {CHANGES} LEFT JOIN (SELECT key, max("offset") AS deletion FROM {CHANGES} WHERE record IS NULL GROUP BY key) USING (key)
WHERE record IS NOT NULL AND "offset" > coalesce(deletion, -1) GROUP BY key"""


class NodesStore:
    """Every partition of the version on every node that stores it, as owner or standby.

    A partition is read as one stream while its records change: each record is compared as of its own position.
    """

    name = StoreName.NODES
    may_catch_up = True

    def __init__(self, target: CheckTarget, stored: StoredRecords) -> None:
        settings, model = target.settings, target.model
        self._target = target
        self._stored = stored
        self._wait_s = settings.quality.wait_s
        self._client = NodeClient(
            settings.kafka.bootstrap_servers,
            PeerRule.of_client(settings.node),
            model.name,
            target.version.number,
            model.declared_topic,
        )
        self._replicas = self._client.replicas(self._wait_s)
        if not self._replicas.ready:
            reason = (
                "; ".join(self._replicas.unreachable)
                or "run `./foldlake status` to see whether the nodes run"
            )
            raise QualityError(
                f"No query node is ready to serve {model.name} v{target.version.number}: {reason}."
            )

    def key_counts(self) -> dict[str, int]:
        """Return the number of keys of each partition on each node."""
        deadline_s = time.monotonic() + self._wait_s
        return {replica.name: self._client.key_count(replica, deadline_s) for replica in self._replicas.ready}

    def read(self) -> Reading:
        """Add the records of every replica."""
        found = self._replicas
        faults = self._add(found.ready)
        replicas = tuple(Replica(r.name, str(self.name), self._target.cut, r.partition) for r in found.ready)
        unowned = (f"partition {partition} has no ready owner" for partition in found.unowned)
        return Reading(replicas, (*faults, *unowned, *found.unreachable))

    def reread(self, places: Collection[str]) -> None:
        """Replace the records of these replicas."""
        again = [replica for replica in self._replicas.ready if replica.name in places]
        self._stored.remove([replica.name for replica in again])
        # A replica that could not be read before has the fault already.
        self._add(again)

    def close(self) -> None:
        """Close the connections to the nodes."""
        self._client.close()

    def _add(self, replicas: Sequence[PartitionReplica]) -> list[str]:
        """Add the records of some replicas; returns a fault for each that could not be read."""

        def read(replica: PartitionReplica) -> str | None:
            try:
                self._read(replica)
            except ReplicaUnavailableError as error:
                return str(error)
            return None

        with ThreadPoolExecutor(READERS) as readers:
            return [fault for fault in readers.map(read, replicas) if fault is not None]

    def _read(self, replica: PartitionReplica) -> None:
        stored, partitions = self._stored, len(self._target.cut)
        if stored.keys is not None:
            own = [key for key in stored.keys if murmur2(key.encode(), partitions) == replica.partition]
            self._look_up(replica, own)
            return
        left_out: list[str] = []
        model, number = self._target.model.name, self._target.version.number
        for batch in stream_records(replica, model, number, stored.sample, self._wait_s):
            keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
            size = min(ANSWERS - len(left_out), ANSWERS_OF_BATCH, len(keys))
            chosen = sorted(random.sample(range(len(keys)), size), reverse=True)
            for row in chosen:
                left_out.append(keys.pop(row))
                del values[row]
            stored.add(stored.records.rows(replica.name, keys, values))
        self._look_up(replica, left_out)

    def _look_up(self, replica: PartitionReplica, keys: Sequence[str]) -> None:
        """Add the records of some keys as applications read them."""
        deadline_s = time.monotonic() + self._wait_s
        texts = (self._client.record(replica, key, deadline_s) for key in keys)
        self._stored.add(self._stored.records.answered(replica.name, [text for text in texts if text]))
