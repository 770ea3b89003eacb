"""The writer of some partitions of a store in Redis."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from valkey.exceptions import NoScriptError

from include.position import Offsets
from query_api.errors import ServerWriteError, StoreDamagedError, StoreFencedError
from query_api.store.base import Binding, Change, ChangelogPosition, newest_changes
from query_api.store.commit_signal import announce_commit
from query_api.store.redis.layout import (
    COMMIT,
    DAMAGED,
    FENCED,
    FORGET,
    MAX_KEY_BYTES,
    NOTHING_READ,
    Head,
    StoreKeys,
    read_heads,
)
from query_api.store.redis.server import Client, RedisServer, digest
from query_api.store.stored_form import pack

# The server does nothing else while it applies the changes of one request: 1,000 take about 5 ms.
MAX_CHANGES = 1_000


@dataclass(frozen=True)
class _Written:
    """The head of a partition as this writer has last seen or written it; `stored` are its bytes, empty if there is none.

    is_foreign: whether the partition was filled from another changelog: its records are removed with the next commit.
    """

    head: Head
    stored: bytes = b""
    is_foreign: bool = False


@dataclass(frozen=True)
class _Request:
    """A call of COMMIT: its keys and arguments, and the head of the partition after it."""

    partition: int
    keys: Sequence[str]
    arguments: Sequence[bytes | str]
    after: _Written


class RedisWriter:
    """Writes the partitions that it has adopted; see StoreWriter.

    A commit of more than MAX_CHANGES changes of a partition becomes visible in parts, in order, each with its position. When a commit
    fails, parts of it may be stored: the store must be opened again.
    """

    is_shared = True
    max_key_bytes = MAX_KEY_BYTES

    def __init__(self, path: Path, server: RedisServer, keys: StoreKeys, partitions: int) -> None:
        """Write to the server; raises ServerWriteError when it does not answer."""
        self._path = path
        self._server = server
        self._keys = keys
        self._partitions = range(partitions)
        self._binding: Binding | None = None
        self._written: dict[int, _Written] = {}
        self._server.write(lambda client: client.ping())

    def commit(
        self,
        changes: Mapping[int, Iterable[Change]],
        positions: Mapping[int, ChangelogPosition],
        schemas: Mapping[int, str],
    ) -> None:
        """Apply changes by partition, in order, with their positions and schemas; raises StoreFencedError.

        1. Write the schemas, so that no record is there without its own.
        2. For each partition: send the changes, in parts, with the head that the part before has left.
        3. The server compares the head with that of the partition, applies the part, and writes the new head, all at once.
        4. Wake the readers of this node that wait for a commit.
        """
        if schemas:
            texts = {str(schema_id): text for schema_id, text in schemas.items()}
            self._server.write(lambda client: client.hset(self._keys.schemas, mapping=texts))
        partitions = sorted(changes.keys() | positions.keys())
        self.adopt(p for p in partitions if p not in self._written)
        self._send(
            [
                request
                for p in partitions
                for request in self._requests(p, list(changes.get(p, ())), positions.get(p))
            ]
        )
        announce_commit(self._path)

    def _requests(
        self, partition: int, changes: Sequence[Change], position: ChangelogPosition | None
    ) -> Iterable[_Request]:
        before = self._written[partition]
        parts = [changes[at : at + MAX_CHANGES] for at in range(0, len(changes), MAX_CHANGES)] or [()]
        for part in parts:
            head = before.head
            if part is parts[-1]:
                head = head if position is None else head.at(position)
            else:
                at = max(head.next_offset, part[-1].offset + 1)
                # What is folded is known for the whole commit only.
                base = head.position or replace(position or NOTHING_READ, folded=Offsets())
                head = head.at(replace(base, next_offset=at))
            request = self._request(partition, before, head, part)
            before = request.after
            yield request

    def _request(
        self, partition: int, before: _Written, head: Head, changes: Iterable[Change] = ()
    ) -> _Request:
        stored = head.dump()
        arguments: list[bytes | str] = [before.stored, stored, "1" if before.is_foreign else "0"]
        newest, deleted = newest_changes(changes)
        for key, change in newest.items():
            if change.value is None:
                arguments += ("delete", key, b"")
            else:
                kind = "replace" if key in deleted else "put"
                arguments += (kind, key, pack(key, change.event_count, change.offset, change.value))
        return _Request(partition, self._names(partition), arguments, _Written(head, stored))

    def _send(self, requests: Sequence[_Request]) -> None:
        """Send all requests at once; raises StoreFencedError, StoreDamagedError or ServerWriteError."""

        def send(client: Client) -> Any:  # noqa: ANN401 - as of `RedisServer.write`
            pipeline = client.pipeline(transaction=False)
            for request in requests:
                pipeline.evalsha(digest(COMMIT), len(request.keys), *request.keys, *request.arguments)
            return pipeline.execute(raise_on_error=False)

        results = self._server.write(send)
        if any(isinstance(result, NoScriptError) for result in results):
            self._server.write(lambda client: client.script_load(COMMIT))
            results = self._server.write(send)
        fenced = set()
        for request, result in zip(requests, results, strict=True):
            if isinstance(result, Exception):
                raise ServerWriteError.refused(self._server.label, result)
            if result == DAMAGED:
                finding = f"partition {request.partition} does not have as many keys as records"
                raise StoreDamagedError.at(self._path, finding)
            if result == FENCED:
                fenced.add(request.partition)
            else:
                self._written[request.partition] = request.after
        if fenced:
            raise StoreFencedError.of(self._keys.name, fenced)

    def schemas(self) -> dict[int, str]:
        """Return every stored schema, by id."""
        stored = self._server.write(lambda client: client.hgetall(self._keys.schemas))
        return {int(schema_id): text.decode() for schema_id, text in stored.items()}

    def positions(self) -> dict[int, ChangelogPosition]:
        """Return the position of every partition that the store has records of."""
        heads = self._heads(self._partitions)
        return {p: found.head.position for p, found in heads.items() if found.head.position is not None}

    def readable_positions(self) -> dict[int, ChangelogPosition]:
        """Return the position of every partition that readers may answer from."""
        heads = self._heads(self._partitions)
        return {
            p: found.head.position or NOTHING_READ for p, found in heads.items() if found.head.is_complete
        }

    def _heads(self, partitions: Iterable[int]) -> dict[int, _Written]:
        """Return the stored heads of those partitions that have one; that of a foreign one is as that of a new one."""
        stored = self._server.write(lambda client: read_heads(client, self._keys, partitions))
        found = {}
        for partition, text in stored.items():
            head = Head.load(text, self._path)
            is_foreign = self._binding is not None and head.binding not in {None, self._binding}
            found[partition] = _Written(self._new_head() if is_foreign else head, text, is_foreign)
        return found

    def _new_head(self) -> Head:
        return Head(binding=self._binding)

    def binding(self) -> Binding | None:
        """Return the changelog that this writer fills the store from; None before `bind`.

        Each partition says in its head what it was filled from: one that was filled from another changelog counts as empty.
        """
        return self._binding

    def bind(self, binding: Binding) -> None:
        """Fill the store from this changelog."""
        self._binding = binding

    def adopt(self, partitions: Iterable[int]) -> dict[int, ChangelogPosition]:
        """Begin to write partitions, and return the positions of those that the store has records of."""
        wanted = list(partitions)
        if not wanted:
            return {}
        found = self._heads(wanted)
        self._written |= {p: found.get(p) or _Written(self._new_head()) for p in wanted}
        return {p: w.head.position for p, w in found.items() if w.head.position is not None}

    def release(self, partition: int) -> None:
        """Write a partition no longer: another node does."""
        self._written.pop(partition, None)

    def forget(self, partition: int) -> None:
        """Remove a partition's records and position; raises StoreFencedError."""
        if partition not in self._written:
            self.adopt([partition])
        expected = self._written[partition].stored
        if self._run(FORGET, partition, expected) == FENCED:
            raise StoreFencedError.of(self._keys.name, [partition])
        self._written[partition] = _Written(self._new_head())

    def mark_complete(self, partitions: Iterable[int]) -> None:
        """Let readers answer from partitions that were read up to their end; raises StoreFencedError."""
        wanted = list(partitions)
        self.adopt(p for p in wanted if p not in self._written)
        self._send(
            [
                self._request(p, self._written[p], replace(self._written[p].head, is_complete=True))
                for p in wanted
                if not self._written[p].head.is_complete
            ]
        )

    def record_count(self) -> int:
        """Return the number of records over all partitions, whoever writes them."""

        def count(client: Client) -> Any:  # noqa: ANN401 - as of `RedisServer.write`
            pipeline = client.pipeline(transaction=False)
            for partition in self._partitions:
                pipeline.zcard(self._keys.order(partition))
            return pipeline.execute()

        return sum(self._server.write(count))

    def housekeep(self) -> None:
        """Notice that the server has lost something, or that another writer has continued; raises StoreFencedError."""
        found = self._server.write(lambda client: read_heads(client, self._keys, self._written))
        fenced = [p for p, written in self._written.items() if found.get(p, b"") != written.stored]
        if fenced:
            raise StoreFencedError.of(self._keys.name, fenced)

    def close(self, *, sync: bool = True) -> None:
        """Do nothing: the server has everything, and the process keeps its connections."""

    def _names(self, partition: int) -> list[str]:
        return [self._keys.records(partition), self._keys.order(partition)]

    def _run(self, script: str, partition: int, *arguments: bytes) -> Any:  # noqa: ANN401 - the script's own type
        return self._server.write(lambda _: self._server.run(script, self._names(partition), arguments))
