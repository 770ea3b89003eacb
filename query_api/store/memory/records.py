"""The records of a store in memory, with their positions and schemas. Thread-safe."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from zlib import crc32

from query_api.store.base import (
    ALL_KEYS,
    ALL_RECORDS,
    Change,
    ChangelogPosition,
    KeyRange,
    Page,
    Sample,
    StoredRecord,
)
from query_api.store.changes import newest_changes
from query_api.store.memory.sorted_keys import SortedKeys

# Memory imposes no limit. This is far above the fold's limit, and still fits into a URL.
MAX_KEY_BYTES = 4096
# A page of a small sample reads at most this many keys: commits wait for it, for about 5 ms.
MAX_SCANNED_KEYS = 20_000
# CPython's overhead per record, in bytes: two bytes objects, two ints, a tuple, its share of a dict and a list.
RECORD_OVERHEAD_BYTES = 260


class Records:
    """Partitions of records. One lock makes commits atomic, and each page a snapshot."""

    def __init__(self, partitions: int) -> None:
        self._partitions = [_Partition() for _ in range(partitions)]
        self._positions: dict[int, ChangelogPosition] = {}
        self._schemas: dict[int, str] = {}
        self._lock = threading.Lock()

    def commit(
        self,
        changes: Mapping[int, Iterable[Change]],
        positions: Mapping[int, ChangelogPosition],
        schemas: Mapping[int, str],
    ) -> None:
        """Apply changes, positions and schemas; see StoreWriter.commit."""
        newest = {partition: newest_changes(batch) for partition, batch in changes.items()}
        with self._lock:
            for partition, (kept, deleted) in newest.items():
                self._partitions[partition].apply(kept, deleted)
            self._positions.update(positions)
            self._schemas.update(schemas)

    def forget(self, partition: int) -> None:
        """Remove a partition's records and position."""
        with self._lock:
            self._partitions[partition] = _Partition()
            self._positions.pop(partition, None)

    def get(self, partition: int, key: bytes) -> StoredRecord | None:
        """Return the record of a key, or None."""
        with self._lock:
            return self._partitions[partition].records.get(key)

    def get_many(self, partition: int, keys: Sequence[bytes]) -> dict[bytes, StoredRecord]:
        """Return the records of the keys that exist."""
        with self._lock:
            records = self._partitions[partition].records
            return {key: records[key] for key in keys if key in records}

    def scan(
        self,
        partition: int,
        keys: KeyRange = ALL_KEYS,
        *,
        after: bytes = b"",
        limit: int,
        sample: Sample = ALL_RECORDS,
    ) -> Page:
        """Return at most `limit` records of a range of keys; see StoreReader.scan."""
        with self._lock:
            return self._partitions[partition].scan(keys, after, limit, sample)

    def count(self, partition: int) -> int:
        """Return the number of records in a partition."""
        with self._lock:
            return len(self._partitions[partition].records)

    def record_count(self) -> int:
        """Return the number of records over all partitions."""
        with self._lock:
            return sum(len(partition.records) for partition in self._partitions)

    def size_bytes(self) -> int:
        """Return the approximate memory use of the records."""
        with self._lock:
            return sum(
                partition.data_bytes + len(partition.records) * RECORD_OVERHEAD_BYTES
                for partition in self._partitions
            )

    def positions(self) -> dict[int, ChangelogPosition]:
        """Return the position of every partition that the store has records of."""
        with self._lock:
            return dict(self._positions)

    def schemas(self) -> dict[int, str]:
        """Return every stored schema, by id."""
        with self._lock:
            return dict(self._schemas)

    def schema_text(self, schema_id: int) -> str | None:
        """Return the Avro schema that records with this id were written with."""
        with self._lock:
            return self._schemas.get(schema_id)


class _Partition:
    """The records of one partition by key, and their keys in order."""

    def __init__(self) -> None:
        self.records: dict[bytes, StoredRecord] = {}
        self.data_bytes = 0
        self._keys = SortedKeys()

    def apply(self, newest: Mapping[bytes, Change], deleted: set[bytes]) -> None:
        """Apply the newest change of each key."""
        records = self.records
        for key, change in newest.items():
            stored = records.get(key)
            if change.value is None:
                self._delete(key)
            elif stored is None:
                records[key] = StoredRecord(change.value, change.event_count, change.offset)
                self._keys.add(key)
                self.data_bytes += len(key) + len(change.value)
            elif key in deleted or change.event_count >= stored.event_count:
                records[key] = StoredRecord(change.value, change.event_count, change.offset)
                self.data_bytes += len(change.value) - len(stored.value)

    def _delete(self, key: bytes) -> None:
        stored = self.records.pop(key, None)
        if stored is not None:
            self._keys.remove(key)
            self.data_bytes -= len(key) + len(stored.value)

    def scan(self, keys: KeyRange, after: bytes, limit: int, sample: Sample) -> Page:
        """Return a page of a range of keys."""
        upper, total = keys.upper, len(self.records)
        found: list[tuple[bytes, StoredRecord]] = []
        last, scanned = after, 0
        for key in self._keys.since(max(keys.first, after)):
            if key == after:
                continue
            if upper is not None and key >= upper:
                break
            if scanned == MAX_SCANNED_KEYS or len(found) == limit:
                return Page(found, last, total)
            last, scanned = key, scanned + 1
            if sample.buckets == 1 or crc32(key) % sample.buckets == sample.bucket:
                found.append((key, self.records[key]))
        return Page(found, None, total)
