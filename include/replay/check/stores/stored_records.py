"""The records that a check with DuckDB has read, in the table `stored`."""

import threading
from collections.abc import Collection

import duckdb
import pyarrow as pa

from include.nodes.record_requests import KeySample
from include.replay.check.readings import PLACE
from include.replay.check.stores.state_records import StateRecords


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
        self.connection.execute(f'DELETE FROM stored WHERE "{PLACE}" IN (SELECT unnest(?))', [list(places)])
