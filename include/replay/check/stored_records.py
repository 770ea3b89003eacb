"""The records that a check with DuckDB has read, in the table `stored`, and the interface of the stores that add to it."""

import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

import duckdb
import pyarrow as pa

from include.nodes.record_requests import KeySample
from include.quality.check import StoreName
from include.replay.check.comparison import Replica
from include.replay.check.state_records import StateRecords


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
