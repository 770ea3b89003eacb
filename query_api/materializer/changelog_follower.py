"""Follows one version's changelog into its store: the data path of the materializer."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from include.errors import RegistryUnavailableError
from include.kafka.schema_registry import SchemaRegistry
from query_api.cluster.node_state import HeldPartition
from query_api.errors import FollowingStoppedError
from query_api.lookup.raw_decoder import RawDecoder, UndecodableError
from query_api.store.base import Change, Position, WritableStore
from query_api.store.lmdb.layout import MAX_KEY_BYTES

# A record is applied as soon as it arrives; what has arrived meanwhile is applied with it, up to this many.
BATCH_RECORDS = 10_000
POLL_S = 0.1
REGISTRY_RETRY_S = 1.0
# How often an idle partition's position says that it is still up to date.
AS_OF_INTERVAL_S = 10.0
# Tombstones live for a day (Kafka's delete.retention.ms): whoever was away for longer may have missed a deletion.
RESUME_LIMIT_S = 12 * 3600.0
# Every bad record up to here is logged, then every thousandth: a broken writer must not fill the disk.
LOGGED_BAD_RECORDS = 20

log = logging.getLogger(__name__)


def follower_consumer(bootstrap_servers: str, client_id: str) -> Consumer:
    """Return a consumer for manual assignment that never commits and never guesses an offset."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "foldlake-query-node-data",
            "client.id": client_id,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            # The default pause when the local queue is full is 1 s; at 200,000 records/s that is a standstill.
            "fetch.queue.backoff.ms": 5,
            "queued.max.messages.kbytes": 32_768,
            "socket.nagle.disable": True,
            "log_level": 3,
        }
    )


@dataclass
class _Held:
    """A partition being followed."""

    position: Position
    is_ready: bool
    target: int | None = None  # the changelog's end when following began
    released_at: float | None = None


class _Batch:
    """What one batch of messages comes to."""

    def __init__(self, next_offsets: dict[int, int]) -> None:
        self.next_offsets = next_offsets
        self.changes: dict[int, list[Change]] = {}
        self.folded: dict[int, dict[int, int]] = {}
        self.advanced: set[int] = set()
        self.at_end: set[int] = set()

    def expects(self, partition: int, offset: int) -> bool:
        """Whether this record is still to be read; what was fetched under an earlier assignment is not."""
        next_offset = self.next_offsets.get(partition)
        return next_offset is not None and offset >= next_offset

    def advance(self, partition: int, next_offset: int) -> None:
        """Everything below `next_offset` has been read."""
        self.next_offsets[partition] = next_offset
        self.advanced.add(partition)

    def drop(self, partition: int) -> None:
        """Leave a partition out: it is read anew."""
        self.next_offsets.pop(partition, None)
        self.changes.pop(partition, None)
        self.folded.pop(partition, None)
        self.advanced.discard(partition)


class Follower:
    """Keeps a store in step with the changelog partitions it is told to hold. One thread runs it; any may ask it."""

    def __init__(
        self,
        topic: str,
        store: WritableStore,
        consumer: Consumer,
        registry: SchemaRegistry,
        *,
        release_grace_s: float,
        ready_before: Iterable[int],
        on_change: Callable[[], None],
    ) -> None:
        """Follow `topic` into `store`.

        release_grace_s: how long a partition is kept after it moved to another node, for those who still ask here.
        ready_before: partitions whose records were complete a moment ago, before this process was restarted.
        on_change: called when a partition becomes ready.
        """
        self._topic = topic
        self._store = store
        self._consumer = consumer
        self._registry = registry
        self._release_grace_s = release_grace_s
        self._on_change = on_change
        self._stopping = threading.Event()
        self._schemas = store.schemas()
        self._new_schemas: dict[int, str] = {}
        self._decoder = RawDecoder(self._schema_text)
        self._wanted: frozenset[int] | None = None
        self.bad_records = 0
        ready = set(ready_before)
        self._held = {p: _Held(position, p in ready) for p, position in store.positions().items()}
        self._forget_outdated()
        self._assign()

    def hold(self, partitions: frozenset[int]) -> None:
        """Say which partitions to hold from now on."""
        self._wanted = partitions

    def stop(self) -> None:
        """Say that nothing is to be waited for any more."""
        self._stopping.set()

    def partitions(self) -> dict[int, HeldPartition]:
        """Return every partition held and whether it is ready."""
        return {p: HeldPartition(held.is_ready, self._end_offset(p)) for p, held in dict(self._held).items()}

    def _end_offset(self, partition: int) -> int:
        watermarks = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
        return -1 if watermarks is None else int(watermarks[1])

    def run_once(self) -> None:
        """Apply what has arrived, or wait a moment for something to arrive.

        Raises FollowingStoppedError when it is stopped while the schema registry is away.
        """
        self._adopt()
        if not self._held:
            time.sleep(POLL_S)  # an unassigned consumer's poll returns at once
            return
        first = self._consumer.poll(POLL_S)
        if first is not None:
            self._apply([first, *self._consumer.consume(BATCH_RECORDS - 1, timeout=0)])
        self._confirm_idle()

    # Which partitions

    def _forget_outdated(self) -> None:
        now = time.time()
        for partition, held in list(self._held.items()):
            if now - held.position.as_of > RESUME_LIMIT_S:
                log.warning(
                    "%s/%s was left for %d h: read anew", self._topic, partition, RESUME_LIMIT_S // 3600
                )
                self._forget(partition)

    def _adopt(self) -> None:
        """Begin with partitions that are newly wanted; let go of those released long enough ago."""
        wanted = self._wanted
        if wanted is None:
            return
        now = time.monotonic()
        new = wanted - self._held.keys()
        expired = set()
        for partition, held in self._held.items():
            if partition in wanted:
                held.released_at = None
            elif held.released_at is None:
                held.released_at = now
            elif now - held.released_at > self._release_grace_s:
                expired.add(partition)
        if not new and not expired:
            return
        for partition in expired:
            self._forget(partition)
        self._held |= {p: _Held(Position(0, time.time()), is_ready=False) for p in new}
        self._assign()
        self._on_change()

    def _forget(self, partition: int) -> None:
        self._store.forget(partition)
        self._held = {p: held for p, held in self._held.items() if p != partition}

    def _assign(self) -> None:
        starts = [
            TopicPartition(self._topic, p, held.position.next_offset or OFFSET_BEGINNING)
            for p, held in sorted(self._held.items())
        ]
        self._consumer.assign(starts)

    # Records

    def _apply(self, messages: list[Message]) -> None:
        """Commit a batch: records, positions and new schemas in one transaction."""
        batch = _Batch({p: held.position.next_offset for p, held in self._held.items()})
        for message in messages:
            error, partition, offset = message.error(), message.partition(), message.offset()
            if partition is None or offset is None:
                log.warning("%s: %s", self._topic, error)
            elif error is not None:
                self._on_error(error, partition, offset, batch)
            elif batch.expects(partition, offset):
                self._take(message, partition, offset, batch)
        now = time.time()
        positions = {
            p: Position(
                batch.next_offsets[p], now, _newest_of(self._held[p].position.folded, batch.folded.get(p))
            )
            for p in batch.advanced & self._held.keys()
        }
        if positions:
            self._store.commit(batch.changes, positions, self._new_schemas)
            self._new_schemas = {}
        for partition, position in positions.items():
            self._held[partition].position = position
        self._note_ready(batch.at_end)

    def _take(self, message: Message, partition: int, offset: int, batch: "_Batch") -> None:
        """Note the change that a record asks for; count and log a bad record."""
        key, value = message.key(), message.value()
        batch.advance(partition, offset + 1)
        if not key or len(key) > MAX_KEY_BYTES:
            self._bad(message, f"its key has {len(key or b'')} bytes, 1 to {MAX_KEY_BYTES} are possible")
            return
        if value is None:
            batch.changes.setdefault(partition, []).append(Change(key, 0, offset, None))
            return
        try:
            fields = self._fields(value)
        except UndecodableError as error:
            self._bad(message, str(error))
            return
        batch.changes.setdefault(partition, []).append(Change(key, fields["event_count"], offset, value))
        folded = batch.folded.setdefault(partition, {})
        source_partition, source_offset = fields["source_partition"], fields["source_offset"]
        if source_offset > folded.get(source_partition, -1):
            folded[source_partition] = source_offset

    def _fields(self, value: bytes) -> dict[str, int]:
        """Decode, waiting for the registry as long as it takes: without it nothing is known of a new schema id."""
        while True:
            try:
                return self._decoder.fields(value)
            except RegistryUnavailableError as error:
                log.warning("%s waits: %s", self._topic, error)
                if self._stopping.wait(REGISTRY_RETRY_S):
                    raise FollowingStoppedError(f"{self._topic} is no longer followed.") from error

    def _schema_text(self, schema_id: int) -> str | None:
        if schema_id not in self._schemas:
            schema = self._registry.schema_by_id(schema_id)
            if schema is None:
                return None
            self._schemas[schema_id] = self._new_schemas[schema_id] = schema.text
        return self._schemas[schema_id]

    def _bad(self, message: Message, reason: str) -> None:
        self.bad_records += 1
        if self.bad_records <= LOGGED_BAD_RECORDS or self.bad_records % 1000 == 0:
            where = f"{self._topic}/{message.partition()} at {message.offset()}"
            log.warning("bad record %d: %s: %s. It is passed over.", self.bad_records, where, reason)

    def _on_error(self, error: KafkaError, partition: int, offset: int, batch: "_Batch") -> None:
        name = error.name()
        if name == "_PARTITION_EOF":
            batch.at_end.add(partition)
            # The end can lie beyond the last record: compaction has taken what was there.
            if partition in self._held and offset > batch.next_offsets[partition]:
                batch.advance(partition, offset)
        elif name == "_AUTO_OFFSET_RESET" and partition in self._held:
            log.warning(
                "%s/%s no longer has the stored offset (%s): read anew", self._topic, partition, error
            )
            self._forget(partition)
            batch.drop(partition)
            self._held = {**self._held, partition: _Held(Position(0, time.time()), is_ready=False)}
            self._assign()
        elif not error.retriable():
            log.warning("%s: %s", self._topic, error)

    def _note_ready(self, at_end: set[int]) -> None:
        became_ready = False
        for partition, held in self._held.items():
            if held.is_ready:
                continue
            if held.target is None:
                end = self._end_offset(partition)
                held.target = end if end >= 0 else None
            reached = held.target is not None and held.position.next_offset >= held.target
            if partition in at_end or reached:
                held.is_ready = became_ready = True
        if became_ready:
            self._on_change()

    def _confirm_idle(self) -> None:
        """Note now and then that a quiet partition's position is up to date."""
        now = time.time()
        quiet = {
            p: replace(held.position, as_of=now)
            for p, held in self._held.items()
            if held.is_ready and now - held.position.as_of > AS_OF_INTERVAL_S
        }
        if quiet:
            self._store.commit({}, quiet, {})
            for partition, position in quiet.items():
                self._held[partition].position = position


def _newest_of(folded: Mapping[int, int], seen: Mapping[int, int] | None) -> dict[int, int]:
    """Return the newest source offset of each source partition in either."""
    return {p: max(folded.get(p, -1), (seen or {}).get(p, -1)) for p in folded.keys() | (seen or {}).keys()}
