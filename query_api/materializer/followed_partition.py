"""A changelog partition that a follower reads: its position, whether it is ready, and when its end was last confirmed."""

import time
from dataclasses import dataclass, field

from include.boot_clock import Moment, boot_id
from include.position import Position
from query_api.cluster.node_state import PartitionState
from query_api.history.arrival import Arrival
from query_api.store.base import ChangelogPosition


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
        """Return a partition that was read up to a stored position; None: of which nothing has been read."""
        return cls.from_beginning() if stored is None else cls(stored)

    @classmethod
    def from_beginning(cls) -> "FollowedPartition":
        """Return a partition of which nothing has been read."""
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
