"""The partitions of a store that all nodes share, as this node can read them, whoever writes them."""

import threading
from collections.abc import Mapping

from include.boot_clock import Moment
from query_api.cluster.node_state import PartitionState
from query_api.materializer.followed_partition import FollowedPartition
from query_api.store.base import ChangelogPosition

# How often a node looks whether other nodes have written: a lookup with a bound waits for so long, in addition.
REFRESH_INTERVAL_S = 0.1


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
