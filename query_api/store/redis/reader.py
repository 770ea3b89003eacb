"""The reader of a store in Redis, on any node."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from valkey.exceptions import ValkeyError

from query_api.errors import StoreDamagedError, StoreMissingError
from query_api.store.base import ALL_KEYS, ChangelogPosition, KeyRange, Page, StoredRecord
from query_api.store.redis.layout import HEAD, SCAN, Head, StoreKeys, read_heads
from query_api.store.redis.server import Client, RedisServer, Unanswered
from query_api.store.stored_form import BadRecordError, unpack

# Records of each partition whose size the server adds up, from which it estimates the others'.
SIZE_SAMPLES = 100

_SeenHead = tuple[bytes, Head]


class RedisReader:
    """Reads from the server; see StoreReader.

    A server can lose everything, or its newest records: when it is emptied, or starts again from an older copy. Each call therefore
    reads the partition's head too, and raises StoreMissingError when it is not the one that was seen before, or has gone back.
    """

    def __init__(self, path: Path, server: RedisServer, keys: StoreKeys, partitions: int) -> None:
        self._path = path
        self._server = server
        self._keys = keys
        self._partitions = range(partitions)
        self._is_replaced = False
        # The newest head of each partition, with its bytes: most calls find the same ones again.
        self._heads: dict[int, _SeenHead] = {}

    def is_replaced(self) -> bool:
        """Whether a partition was filled again from the beginning."""
        return self._is_replaced

    def get(self, partition: int, key: bytes) -> StoredRecord | None:
        """Return the record of a key, or None; raises StoreDamagedError when its checksum does not match."""
        if key == HEAD:
            return None
        name, before = self._keys.records(partition), self._heads.get(partition)
        head, record = self._answered(lambda: self._server.ask("HMGET", name, HEAD, key))
        self._check(partition, head, before)
        try:
            return None if record is None else unpack(key, record)
        except BadRecordError as error:
            raise StoreDamagedError.at(self._path, str(error)) from error

    def scan(self, partition: int, keys: KeyRange = ALL_KEYS, *, after: bytes = b"", limit: int) -> Page:
        """Return at most `limit` records of a range of keys; see StoreReader.scan."""
        names = [self._keys.records(partition), self._keys.order(partition)]
        before = self._heads.get(partition)
        total, found, (head, *records) = self._call(
            lambda _: self._server.run(SCAN, names, (*_bounds(keys, after), limit + 1))
        )
        self._check(partition, head, before)
        following = found[limit - 1] if len(found) > limit else None
        stored = [entry for entry in zip(found[:limit], records, strict=False) if entry[1] is not None]
        return Page([key for key, _ in stored], [record for _, record in stored], following, total)

    def count(self, partition: int) -> int:
        """Return the number of records in a partition."""
        before = self._heads.get(partition)
        head, size = self._call(
            lambda client: (
                client.pipeline()
                .hget(self._keys.records(partition), HEAD.decode())
                .zcard(self._keys.order(partition))
                .execute()
            )
        )
        self._check(partition, head, before)
        return int(size)

    def size_bytes(self) -> int:
        """Return the approximate memory that the store uses in the server."""

        def read(client: Client) -> Any:  # noqa: ANN401 - as of `_call`
            pipeline = client.pipeline(transaction=False)
            for name in self._keys.of_partitions(len(self._partitions)):
                pipeline.memory_usage(name, samples=SIZE_SAMPLES)
            return pipeline.execute()

        return sum(size or 0 for size in self._call(read))

    def schema_text(self, schema_id: int) -> str | None:
        """Return the Avro schema that records with this id were written with."""
        stored = self._call(lambda client: client.hget(self._keys.schemas, str(schema_id)))
        return None if stored is None else stored.decode()

    def positions(self) -> dict[int, ChangelogPosition]:
        """Return the position of every partition that the store has records of."""
        before = dict(self._heads)
        heads = self._call(lambda client: read_heads(client, self._keys, self._partitions))
        found = {
            partition: self._check(partition, stored, before.get(partition)).position
            for partition, stored in heads.items()
        }
        return {partition: position for partition, position in found.items() if position is not None}

    def _call(self, request: Callable[[Client], Any]) -> Any:  # noqa: ANN401 - the server's answer
        return self._answered(lambda: self._server.call(request))

    def _answered(self, ask: Callable[[], Any]) -> Any:  # noqa: ANN401 - the server's answer
        try:
            return ask()
        except (Unanswered, ValkeyError) as error:
            raise StoreMissingError.without_server(self._server.label, error) from error

    def _check(self, partition: int, stored: bytes | None, before: _SeenHead | None) -> Head:
        """Return the head of a partition whose records may be used; raises StoreMissingError.

        before: the head as it was seen before the request: other threads may have seen a newer one since.
        """
        if before is not None and before[0] == stored:
            return before[1]
        head = None if stored is None else Head.load(stored, self._path)
        if before is not None and (head is None or head.incarnation != before[1].incarnation):
            self._is_replaced = True
        has_gone_back = before is not None and head is not None and head.next_offset < before[1].next_offset
        if stored is None or head is None or not head.is_complete or self._is_replaced or has_gone_back:
            raise StoreMissingError.incomplete(self._server.label, self._keys.name, partition)
        newest = self._heads.get(partition)
        if newest is None or newest[1].next_offset <= head.next_offset:
            self._heads[partition] = (stored, head)
        return head


def _bounds(keys: KeyRange, after: bytes) -> tuple[bytes, bytes]:
    """Return the bounds of a range of keys that are greater than `after`, in the server's form."""
    first, upper = max(keys.first, after), keys.upper
    if upper is not None and first >= upper:
        return b"+", b"-"  # an empty range
    low = b"-" if not first else (b"(" if first == after else b"[") + first
    return low, b"+" if upper is None else b"(" + upper
