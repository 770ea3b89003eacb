"""The stores of the query nodes, read through their API: each copy of a partition on a node is a replica."""

import random
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import murmur2

from include.nodes.record_client import PartitionReplica, ReplicaUnavailableError
from include.nodes.record_stream import stream_records
from include.replay.check.readings import Reading
from include.replay.check.stores.node_replicas import ANSWERS, ANSWERS_OF_BATCH, READERS, NodeReplicas
from include.replay.check.stores.stored_records import StoredRecords
from include.replay.check.target import CheckTarget

# More keys are read with all others of their partition.
LOOKED_UP_KEYS = 200


class NodesStore(NodeReplicas):
    """The query nodes; adds their records to DuckDB's table."""

    def __init__(self, target: CheckTarget, stored: StoredRecords) -> None:
        super().__init__(target)
        self._stored = stored

    def read(self) -> Reading:
        """Add the records of every replica."""
        return self._reading(self._add(self._replicas.ready))

    def reread(self, places: Collection[str]) -> None:
        """Replace the records of these replicas."""
        again = [replica for replica in self._replicas.ready if replica.name in places]
        self._stored.remove([replica.name for replica in again])
        # A replica that could not be read before has the fault already.
        self._add(again)

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
        if stored.keys is not None and len(stored.keys) <= LOOKED_UP_KEYS:
            own = [key for key in stored.keys if murmur2(key.encode(), partitions) == replica.partition]
            self._look_up(replica, own)
            return
        left_out: list[str] = []
        wanted = None if stored.keys is None else pa.array(stored.keys, pa.string())
        model, number = self._target.model.name, self._target.version.number
        for batch in stream_records(replica, model, number, stored.sample, self._wait_s, self._client.tls):
            # Before they are decoded.
            found = batch if wanted is None else batch.filter(pc.is_in(batch.column("key"), wanted))
            keys, values = found.column("key").to_pylist(), found.column("value").to_pylist()
            size = min(ANSWERS - len(left_out), ANSWERS_OF_BATCH, len(keys))
            chosen = sorted(random.sample(range(len(keys)), size), reverse=True)
            for row in chosen:
                left_out.append(keys.pop(row))
                del values[row]
            stored.add(stored.records.rows(replica.name, keys, values))
        self._look_up(replica, left_out)

    def _look_up(self, replica: PartitionReplica, keys: Sequence[str]) -> None:
        """Add the records of some keys as applications read them."""
        deadline_s = self._deadline_s()
        texts = (self._client.record(replica, key, deadline_s) for key in keys)
        self._stored.add(self._stored.records.answered(replica.name, [text for text in texts if text]))
