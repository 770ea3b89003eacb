"""One batch of changelog messages, collected for one commit."""

from collections.abc import Mapping

from query_api.store.base import Change, ChangelogPosition


class ChangelogBatch:
    """The changes of a batch and the positions that it reaches, by partition.

    next_offsets: the first offset of each partition that has not been read; moves on as messages are added.
    folded: partition -> source partition -> newest source offset in the batch.
    """

    def __init__(self, next_offsets: dict[int, int]) -> None:
        self.next_offsets = next_offsets
        self.changes: dict[int, list[Change]] = {}
        self.folded: dict[int, dict[int, int]] = {}
        self.advanced: set[int] = set()
        self.at_end: set[int] = set()

    def expects(self, partition: int, offset: int) -> bool:
        """Whether this record has not been read yet; a record fetched under an earlier assignment may have been."""
        next_offset = self.next_offsets.get(partition)
        return next_offset is not None and offset >= next_offset

    def advance(self, partition: int, next_offset: int) -> None:
        """Move a partition's position: everything below `next_offset` has been read."""
        self.next_offsets[partition] = next_offset
        self.advanced.add(partition)

    def drop(self, partition: int) -> None:
        """Remove a partition, which is going to be read from the beginning."""
        self.next_offsets.pop(partition, None)
        self.changes.pop(partition, None)
        self.folded.pop(partition, None)
        self.advanced.discard(partition)

    def position(self, partition: int, before: ChangelogPosition, as_of: float) -> ChangelogPosition:
        """Return the position that a partition reaches with this batch."""
        folded = _newest_of(before.folded, self.folded.get(partition, {}))
        return ChangelogPosition(self.next_offsets[partition], as_of, folded)


def _newest_of(folded: Mapping[int, int], seen: Mapping[int, int]) -> dict[int, int]:
    """Return the newest source offset of each source partition in either."""
    return {p: max(folded.get(p, -1), seen.get(p, -1)) for p in folded.keys() | seen.keys()}
