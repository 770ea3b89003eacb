"""Follows one version's changelog into its store: the data path of the materializer."""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from include.boot_clock import Moment
from include.errors import RegistryUnavailableError
from include.kafka.compacted_topics import ChangelogReader
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.state_record import RawDecoder
from include.kafka.wire_format import UndecodableError
from include.position import Position
from query_api.cluster.node_state import PartitionState
from query_api.errors import FollowingStoppedError, StoreFullError
from query_api.history.latencies import Arrival
from query_api.materializer.followed_partitions import ChangelogBatch, FollowedPartition, RemovedKeys
from query_api.store.base import Change, ChangelogPosition, StoreWriter

# A record is applied as soon as it arrives, in a batch with up to this many others that have arrived by then.
BATCH_RECORDS = 10_000
POLL_S = 0.1
REGISTRY_RETRY_S = 1.0
# How often the position of an idle partition is stored again, with the time at which it was last known to be current.
AS_OF_INTERVAL_S = 10.0
# Tombstones are kept for a day (Kafka's delete.retention.ms): a node that was down for longer may miss a deletion.
RESUME_LIMIT_S = 12 * 3600.0
# After a restart of the machine, only the wall clock can tell how long it was down; it may have been corrected by this much.
CLOCK_TOLERANCE_S = 60.0
# The first bad records, up to this number, are logged, then every thousandth: a faulty writer must not fill the disk.
LOGGED_BAD_RECORDS = 20

log = logging.getLogger(__name__)


class OffsetLostError(Exception):
    """A partition no longer has the offset to be read next."""

    def __init__(self, partition: int, reason: str) -> None:
        super().__init__(reason)
        self.partition = partition


class ChangelogFollower:
    """Applies the changelog of the target partitions to a store. One thread runs it. on_stored: see ChangelogBatch."""

    def __init__(
        self,
        topic: str,
        store: StoreWriter,
        consumer: Consumer,
        registry: SchemaRegistry,
        *,
        release_grace_s: float,
        previously_ready: Mapping[int, Moment],
        on_change: Callable[[], None],
    ) -> None:
        """Follow `topic` into `store`.

        release_grace_s: how long a partition is kept after it moved to another node; lookups may still arrive here.
        previously_ready: partitions that were ready just before this process was restarted, and when the end of each was last
            confirmed.
        on_change: called when a partition becomes ready.
        """
        self._topic = topic
        self._store = store
        self._consumer = consumer
        self._reader = ChangelogReader(consumer, topic, self._on_error)
        self._registry = registry
        self._release_grace_s = release_grace_s
        self._on_change = on_change
        self.on_stored: Callable[[list[tuple[Position, int]]], None] | None = None
        self._stopping = threading.Event()
        self._max_key_bytes = store.max_key_bytes
        self._schemas = store.schemas()
        self._new_schemas: dict[int, str] = {}
        self._decoder = RawDecoder(self._schema_text)
        self._removed = RemovedKeys()
        self._target: frozenset[int] | None = None
        self.bad_records = 0
        self.write_error = ""  # why the last write failed; empty after a write that succeeded
        now = Moment.now()
        # Of a shared store, other nodes write the other partitions: a node begins with none, and adopts its own.
        self._followed = {
            p: FollowedPartition(
                position, is_ready=p in previously_ready, confirmed_at=previously_ready.get(p, now)
            )
            for p, position in ({} if store.is_shared else store.positions()).items()
        }
        self._forget_outdated(self._followed)
        self._assign()

    def set_target(self, partitions: frozenset[int]) -> None:
        """Set the partitions to follow."""
        self._target = partitions

    def stop(self) -> None:
        """Interrupt the current and every later wait in `run_once`."""
        self._stopping.set()

    def partitions(self) -> dict[int, PartitionState]:
        """Return the state of every followed partition."""
        return {p: followed.state(p, self._end_offset(p)) for p, followed in dict(self._followed).items()}

    def arrivals(self) -> list[Arrival]:
        """Return of each partition an event that has arrived since the last call, if there is one."""
        return [arrival for f in dict(self._followed).values() if (arrival := f.take_arrival()) is not None]

    def observe_ends(self, ends: Mapping[int, int], read_at: Moment) -> None:
        """Note the end offset of each partition as it was when asked for at `read_at`."""
        for partition, followed in dict(self._followed).items():
            if partition in ends:
                followed.observe_end(ends[partition], read_at)

    def _end_offset(self, partition: int) -> int:
        watermarks = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), cached=True)
        return -1 if watermarks is None else int(watermarks[1])

    def run_once(self) -> None:
        """Apply the records that have arrived, or wait briefly for one.

        Raises FollowingStoppedError when `stop` is called while the schema registry is unavailable, and StoreFullError when the
        store has no space: nothing is applied then, and the next call reads the same records again.
        """
        bad_records = self.bad_records
        try:
            self._run_once()
        except StoreFullError as error:
            self.write_error, self.bad_records = str(error), bad_records
            self._assign()
            raise
        except OffsetLostError as error:
            self.bad_records = bad_records
            self._restart(error)

    def _run_once(self) -> None:
        self._adopt_target()
        if not self._followed:
            time.sleep(POLL_S)  # without an assignment, poll returns immediately
            return
        arrived = self._reader.poll(BATCH_RECORDS, POLL_S)
        if arrived:
            self._apply(arrived)
        self._refresh_idle_positions()

    def _forget_outdated(self, partitions: Iterable[int]) -> None:
        for partition in list(partitions):
            followed = self._followed[partition]
            if not -CLOCK_TOLERANCE_S <= followed.position.age_s() <= RESUME_LIMIT_S:
                log.warning(
                    "%s/%s was last read more than %d h ago, or the clock was set back: reading it from the beginning",
                    self._topic,
                    partition,
                    RESUME_LIMIT_S // 3600,
                )
                self._forget(partition)

    def _adopt_target(self) -> None:
        """Add partitions that are new in the target; remove those that left it more than the grace time ago."""
        target = self._target
        if target is None:
            return
        now = time.monotonic()
        new = target - self._followed.keys()
        expired = set()
        for partition, followed in self._followed.items():
            if partition in target:
                followed.released_at = None
            elif followed.released_at is None:
                followed.released_at = now
            elif now - followed.released_at > self._release_grace_s:
                expired.add(partition)
        if not new and not expired:
            return
        for partition in expired:
            self._store.release(partition)
        stored = self._store.adopt(new)
        kept = {p: followed for p, followed in self._followed.items() if p not in expired}
        self._followed = kept | {p: FollowedPartition.at(stored.get(p)) for p in new}
        self._forget_outdated(new)
        self._assign()
        self._on_change()

    def _forget(self, partition: int) -> None:
        self._store.forget(partition)
        self._followed = {p: followed for p, followed in self._followed.items() if p != partition}

    def _restart(self, lost: OffsetLostError) -> None:
        """Read a partition from the beginning."""
        where = f"{self._topic}/{lost.partition}"
        log.warning("%s no longer has the stored offset (%s): reading it from the beginning", where, lost)
        self._forget(lost.partition)
        self._followed = {**self._followed, lost.partition: FollowedPartition.from_beginning()}
        self._assign()

    def _assign(self) -> None:
        self._reader.assign(
            {p: followed.position.next_offset or OFFSET_BEGINNING for p, followed in self._followed.items()}
        )

    def _apply(self, messages: list[Message]) -> None:
        """Commit a batch: records, positions and new schemas in one transaction."""
        batch, offsets = ChangelogBatch(self.on_stored), self._reader.offsets
        for partition, offset, message in self._reader.records(messages):
            self._add(message, partition, offset, batch)
        now = Moment.now()
        positions = {
            p: batch.position(p, offsets[p], followed.position, now)
            for p, followed in self._followed.items()
            if offsets[p] != followed.position.next_offset
        }
        if positions:
            self._commit(batch.changes, positions)
            batch.committed()
        for partition, position in positions.items():
            self._followed[partition].advance(position, batch.first.get(partition))
        self._update_ready(self._reader.at_end)

    def _commit(
        self, changes: Mapping[int, Iterable[Change]], positions: Mapping[int, ChangelogPosition]
    ) -> None:
        self._store.commit(changes, positions, self._new_schemas)
        self._new_schemas = {}
        self.write_error = ""

    def _add(self, message: Message, partition: int, offset: int, batch: ChangelogBatch) -> None:
        """Add a record's change to the batch; count and log a bad record."""
        key, value = message.key(), message.value()
        if not key or len(key) > self._max_key_bytes:
            self._skip_bad(
                message, f"its key has {len(key or b'')} bytes, the store accepts 1 to {self._max_key_bytes}"
            )
            return
        try:
            position = Position.of_removal(message.headers()) if value is None else self._position(value)
        except UndecodableError as error:
            self._skip_bad(message, str(error))
            return
        if position is not None:
            batch.note_folded(partition, position, message)
            if self._removed.is_repetition(key, position.event_count, is_removal=value is None):
                return
        event_count = position.event_count if position is not None and value is not None else 0
        batch.changes.setdefault(partition, []).append(Change(key, event_count, offset, value))

    def _position(self, value: bytes) -> Position:
        """Decode a state record's position; waits while the schema registry is unavailable and the schema id is new."""
        while True:
            try:
                return Position.take_from(self._decoder.fields(value))
            except RegistryUnavailableError as error:
                log.warning("%s waits for the schema registry: %s", self._topic, error)
                if self._stopping.wait(REGISTRY_RETRY_S):
                    raise FollowingStoppedError(f"Following {self._topic} was stopped.") from error

    def _schema_text(self, schema_id: int) -> str | None:
        if schema_id not in self._schemas:
            schema = self._registry.usable_schema(schema_id)
            if schema is None:
                return None
            self._schemas[schema_id] = self._new_schemas[schema_id] = schema.text
        return self._schemas[schema_id]

    def _skip_bad(self, message: Message, reason: str) -> None:
        self.bad_records += 1
        if self.bad_records <= LOGGED_BAD_RECORDS or self.bad_records % 1000 == 0:
            where = f"{self._topic}/{message.partition()} at {message.offset()}"
            log.warning("skipped bad record %d: %s: %s", self.bad_records, where, reason)

    def _on_error(self, error: KafkaError, partition: int | None) -> None:
        if error.name() == "_AUTO_OFFSET_RESET" and partition in self._followed:
            raise OffsetLostError(partition, str(error))
        if not error.retriable():
            log.warning("%s: %s", self._topic, error)

    def _update_ready(self, at_end: set[int]) -> None:
        ready = [
            p
            for p, followed in self._followed.items()
            if followed.became_ready(self._end_offset(p), is_at_end=p in at_end)
        ]
        if ready:
            self._store.mark_complete(ready)
            self._on_change()

    def _refresh_idle_positions(self) -> None:
        """Periodically store that an idle partition's position was still current when its end was last confirmed."""
        idle = {
            p: followed.position.confirmed(followed.confirmed_at)
            for p, followed in self._followed.items()
            if followed.is_ready and followed.is_stored_as_of_earlier(AS_OF_INTERVAL_S)
        }
        if idle:
            self._commit({}, idle)
            for partition, position in idle.items():
                self._followed[partition].position = position
