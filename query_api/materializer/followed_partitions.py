"""The changelog partitions that a node follows: their state, the batch of records for the next commit, and partitions of shared stores.

A partition has a position, may be ready for lookups, and its end was confirmed at some time.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import Message

from include.boot_clock import Moment, boot_id
from include.position import Offsets, Position, supersedes
from query_api.cluster.node_state import PartitionState
from query_api.history.latencies import Arrival
from query_api.store.base import Change, ChangelogPosition

# The driver repeats at most what it has written since its last commit. Some 100 bytes each.
MAX_KEYS = 200_000
# How often a node looks whether other nodes have written: a lookup with a bound waits for so long, in addition.
REFRESH_INTERVAL_S = 0.1
OnStored = Callable[[list[tuple[Position, int]]], None]


class ChangelogBatch:
    """The changes of a batch and how far they are folded, by partition.

    newest_folded: partition -> source partition -> newest source offset in the batch.
    first: partition -> position of the first record of the batch.
    on_stored: called by `committed` with position and time in Kafka (ms) of each state record; None if nobody traces them.
    """

    def __init__(self, on_stored: OnStored | None = None) -> None:
        self._on_stored = on_stored
        self._records: list[tuple[Position, int]] = []
        self.changes: dict[int, list[Change]] = {}
        self.newest_folded: dict[int, dict[int, int]] = {}
        self.first: dict[int, Position] = {}

    def note_folded(self, partition: int, newest: Position, message: Message) -> None:
        """Note that the changelog contains the events of a source partition up to this one, by this message."""
        if self._on_stored is not None:
            self._records.append((newest, message.timestamp()[1]))
        self.first.setdefault(partition, newest)
        offsets = self.newest_folded.setdefault(partition, {})
        offsets[newest.partition] = max(newest.offset, offsets.get(newest.partition, -1))

    def committed(self) -> None:
        """Tell that the batch is in the store."""
        if self._on_stored is not None and self._records:
            self._on_stored(self._records)

    def position(
        self, partition: int, next_offset: int, before: ChangelogPosition, as_of: Moment
    ) -> ChangelogPosition:
        """Return a partition's position after this batch, up to `next_offset`."""
        folded = before.folded.merge(Offsets.of_newest(self.newest_folded.get(partition, {})))
        return ChangelogPosition.at(next_offset, as_of, folded)


class RemovedKeys:
    """Up to MAX_KEYS keys that were removed last, each with the number of events up to its removal.

    After a restart, the stream driver repeats records, also older ones of items that have ended since.
    """

    def __init__(self) -> None:
        self._event_counts: OrderedDict[bytes, int] = OrderedDict()

    def add(self, key: bytes, event_count: int) -> None:
        """Note a removal; forget the oldest one if there are too many."""
        self._event_counts[key] = max(event_count, self._event_counts.pop(key, 0))
        if len(self._event_counts) > MAX_KEYS:
            self._event_counts.popitem(last=False)

    def is_outdated(self, key: bytes, event_count: int) -> bool:
        """Return whether a record with this number of events was written before the key was removed."""
        removed_at = self._event_counts.get(key)
        return removed_at is not None and not supersedes(event_count, removed_at, is_known_removed=True)

    def is_repetition(self, key: bytes, event_count: int, *, is_removal: bool) -> bool:
        """Return whether a state record was written before the key was removed; note a removal, which is no repetition."""
        if is_removal:
            self.add(key, event_count)
        return not is_removal and self.is_outdated(key, event_count)


@dataclass
class FollowedPartition:
    """A partition being followed.

    ready_offset: the changelog's end offset when following started; from this offset the partition is ready. None: unknown.
    released_at: when the partition was last removed from the target, by the monotonic clock.
    confirmed_at: when the partition's end was last read that the position has reached since. A partition
        that becomes ready has reached an end that was read after following started, so it begins with that time.
    arrival: the first event whose state has arrived since the last `take_arrival`, if the partition was ready then.
    """

    position: ChangelogPosition
    is_ready: bool = False
    ready_offset: int | None = None
    released_at: float | None = None
    confirmed_at: Moment = field(default_factory=Moment.now)
    arrival: Arrival | None = None
    _awaited: tuple[int, Moment] | None = None

    @classmethod
    def at(cls, stored: ChangelogPosition | None) -> "FollowedPartition":
        """Return a partition that was read up to a stored position; None: it has not been read yet."""
        return cls.from_beginning() if stored is None else cls(stored)

    @classmethod
    def from_beginning(cls) -> "FollowedPartition":
        """Return a partition that has not been read yet."""
        return cls(ChangelogPosition.at(0, Moment.now()))

    def observe_end(self, end: int, read_at: Moment) -> None:
        """Note that the partition ended at offset `end` when that was asked for at `read_at`.

        While the position is below an end that was read earlier, newer ends are ignored: under continuous writes, the position
        would reach none of them.
        """
        self.confirm()
        if self.position.next_offset >= end:
            self.confirmed_at = max(self.confirmed_at, read_at)
        elif self._awaited is None:
            self._awaited = (end, read_at)

    def advance(self, position: ChangelogPosition, first: Position | None) -> None:
        """Adopt the position after a commit; `first` is the first event of the committed records.

        An event below the position was folded before: its record was repeated after a crash, or is that of a slower task.
        """
        if first is not None and self.is_ready and self.arrival is None and self._is_new(first):
            self.arrival = Arrival(first, time.time())
        self.position = position

    def _is_new(self, event: Position) -> bool:
        return event.offset >= self.position.folded.of(event.partition)

    def take_arrival(self) -> Arrival | None:
        """Return `arrival`, and forget it."""
        arrival, self.arrival = self.arrival, None
        return arrival

    def became_ready(self, end: int, *, is_at_end: bool) -> bool:
        """Note what is known about the partition's end; return whether the partition becomes ready with that.

        end: its end offset as last fetched; negative while unknown. is_at_end: whether the position has just reached the end.
        """
        if self.is_ready:
            return False
        if self.ready_offset is None and end >= 0:
            self.ready_offset = end
        self.is_ready = is_at_end or (
            self.ready_offset is not None and self.position.next_offset >= self.ready_offset
        )
        return self.is_ready

    def state(self, partition: int, end: int) -> PartitionState:
        """Return the state to publish; `partition` is its number, `end` its end offset as last fetched."""
        self.confirm()
        folded = self.position.folded.of(partition)
        at = self.confirmed_at
        return PartitionState(self.is_ready, end, folded, at.unix_s, at.unix_s, at.boot_s, at.boot_s)

    def is_stored_as_of_earlier(self, seconds: float) -> bool:
        """Whether the end was confirmed more than this many seconds after the time that is stored with the position."""
        stored = self.position
        return stored.boot_id != boot_id() or self.confirmed_at.boot_s - stored.as_of_boot_s > seconds

    def confirm(self) -> None:
        """Adopt the time of an end that the position has reached since it was read."""
        if self._awaited is not None and self.position.next_offset >= self._awaited[0]:
            self.confirmed_at = max(self.confirmed_at, self._awaited[1])
            self._awaited = None


class SharedPartitions:
    """Compares the positions in the store with the ends of the changelog: so a node knows by its own clock how old its answers can be.

    Thread-safe.
    """

    def __init__(self, previously_ready: Mapping[int, Moment]) -> None:
        """Observe nothing yet; `previously_ready` as in ChangelogFollower."""
        self._previously_ready = dict(previously_ready)
        self._observed: dict[int, FollowedPartition] | None = None
        self._ends: dict[int, int] = {}
        self._lock = threading.Lock()

    def refresh(self, positions: Mapping[int, ChangelogPosition]) -> bool:
        """Note the positions of the partitions that can be read; return whether one has changed.

        A partition that has gone back, or was not there, is not ready until it has reached an end that is read from now on.
        """
        with self._lock:
            before = self._observed or {}
            found: dict[int, FollowedPartition] = {}
            has_changed = False
            for number, position in positions.items():
                known = before.get(number)
                if known is None or position.next_offset < known.position.next_offset:
                    known = self._new(number, position)
                has_changed = has_changed or known is not before.get(number) or known.position != position
                known.position = position
                known.became_ready(-1, is_at_end=False)
                found[number] = known
            self._observed = found
            self._previously_ready = {}
            return has_changed

    def _new(self, number: int, position: ChangelogPosition) -> FollowedPartition:
        confirmed_at = self._previously_ready.get(number)
        if confirmed_at is None:
            return FollowedPartition(position)
        return FollowedPartition(position, is_ready=True, confirmed_at=confirmed_at)

    def observe_ends(self, ends: Mapping[int, int], read_at: Moment) -> None:
        """Note the end offset of each partition as it was when asked for at `read_at`."""
        with self._lock:
            self._ends = dict(ends)
            for number, partition in (self._observed or {}).items():
                if number in ends:
                    if read_at >= partition.confirmed_at:
                        partition.became_ready(ends[number], is_at_end=False)
                    partition.observe_end(ends[number], read_at)

    def states(self) -> dict[int, PartitionState] | None:
        """Return the state of each partition that can be read; None while the store was not read yet."""
        with self._lock:
            if self._observed is None:
                return None
            return {n: p.state(n, self._ends.get(n, -1)) for n, p in self._observed.items()}
