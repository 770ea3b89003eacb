"""One batch of changelog messages, collected for one commit, and the keys that were removed last."""

from collections import OrderedDict

from include.boot_clock import Moment
from include.position import Offsets, Position, supersedes
from query_api.store.base import Change, ChangelogPosition

# The driver repeats at most what it has written since its last commit. Some 100 bytes each.
MAX_KEYS = 200_000


class ChangelogBatch:
    """The changes of a batch and how far they are folded, by partition.

    newest_folded: partition -> source partition -> newest source offset in the batch.
    first: partition -> position of the first record of the batch.
    """

    def __init__(self) -> None:
        self.changes: dict[int, list[Change]] = {}
        self.newest_folded: dict[int, dict[int, int]] = {}
        self.first: dict[int, Position] = {}

    def note_folded(self, partition: int, newest: Position) -> None:
        """Note that the changelog contains the events of a source partition up to this one."""
        self.first.setdefault(partition, newest)
        offsets = self.newest_folded.setdefault(partition, {})
        offsets[newest.partition] = max(newest.offset, offsets.get(newest.partition, -1))

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
