"""One batch of changelog messages, collected for one commit."""

from include.boot_clock import Moment
from include.position import Offsets, Position
from query_api.store.base import Change, ChangelogPosition


class ChangelogBatch:
    """The changes of a batch and the positions after it, by partition.

    next_offsets: the first unread offset of each partition; advances as messages are added.
    newest_folded: partition -> source partition -> newest source offset in the batch.
    first: partition -> position of the first record of the batch.
    """

    def __init__(self, next_offsets: dict[int, int]) -> None:
        self.next_offsets = next_offsets
        self.changes: dict[int, list[Change]] = {}
        self.newest_folded: dict[int, dict[int, int]] = {}
        self.first: dict[int, Position] = {}
        self.advanced: set[int] = set()
        self.at_end: set[int] = set()

    def expects(self, partition: int, offset: int) -> bool:
        """Whether this record is unread; a record fetched under an earlier assignment may have been read already."""
        next_offset = self.next_offsets.get(partition)
        return next_offset is not None and offset >= next_offset

    def advance(self, partition: int, next_offset: int) -> None:
        """Move a partition's position: everything below `next_offset` has been read."""
        self.next_offsets[partition] = next_offset
        self.advanced.add(partition)

    def drop(self, partition: int) -> None:
        """Remove a partition that will be read from the beginning."""
        self.next_offsets.pop(partition, None)
        self.changes.pop(partition, None)
        self.newest_folded.pop(partition, None)
        self.first.pop(partition, None)
        self.advanced.discard(partition)

    def note_folded(self, partition: int, newest: Position) -> None:
        """Note that the changelog contains the events of a source partition up to this one."""
        self.first.setdefault(partition, newest)
        offsets = self.newest_folded.setdefault(partition, {})
        offsets[newest.partition] = max(newest.offset, offsets.get(newest.partition, -1))

    def position(self, partition: int, before: ChangelogPosition, as_of: Moment) -> ChangelogPosition:
        """Return a partition's position after this batch."""
        folded = before.folded.merge(Offsets.of_newest(self.newest_folded.get(partition, {})))
        return ChangelogPosition.at(self.next_offsets[partition], as_of, folded)
