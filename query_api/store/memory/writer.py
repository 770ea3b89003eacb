"""The writer of an in-memory store: applies changes in its process, which also serves the readers."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from query_api.store.base import Binding, Change, ChangelogPosition
from query_api.store.commit_signal import announce_commit
from query_api.store.local_writer import LocalWriter
from query_api.store.memory.records import MAX_KEY_BYTES, Records
from query_api.store.memory.server import RecordServer


class MemoryWriter(LocalWriter):
    """The only writer of an in-memory store; see StoreWriter."""

    max_key_bytes = MAX_KEY_BYTES

    def __init__(self, path: Path, records: Records, server: RecordServer) -> None:
        self._path = path
        self._records = records
        self._server = server
        self._binding: Binding | None = None

    def commit(
        self,
        changes: Mapping[int, Iterable[Change]],
        positions: Mapping[int, ChangelogPosition],
        schemas: Mapping[int, str],
    ) -> None:
        """Apply changes, positions and schemas; see StoreWriter.commit."""
        self._records.commit(changes, positions, schemas)
        announce_commit(self._path)

    def schemas(self) -> dict[int, str]:
        """Return every stored schema, by id."""
        return self._records.schemas()

    def positions(self) -> dict[int, ChangelogPosition]:
        """Return the position of every partition that the store has records of."""
        return self._records.positions()

    def binding(self) -> Binding | None:
        """Return the changelog incarnation that the store was filled from; None for a new store."""
        return self._binding

    def bind(self, binding: Binding) -> None:
        """Record the changelog incarnation that the store is filled from."""
        self._binding = binding

    def forget(self, partition: int) -> None:
        """Remove a partition's records and position."""
        self._records.forget(partition)

    def record_count(self) -> int:
        """Return the number of records over all partitions."""
        return self._records.record_count()

    def housekeep(self) -> None:
        """Do nothing: memory needs no maintenance."""

    def close(self, *, sync: bool = True) -> None:  # noqa: ARG002 - there is no disk to write to
        """Stop serving readers; the records are lost."""
        self._server.close()
