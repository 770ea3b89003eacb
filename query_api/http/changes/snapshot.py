"""The present items at the beginning of a stream, and the position from which on it continues without a gap."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from query_api.changes.key_change import Selection
from query_api.http.changes.event_frames import event
from query_api.lookup.model_pages import Cursor, Part, PartQuery

PAGE_RECORDS = 500


@dataclass
class Snapshot:
    """The items that a stream selects, read from the stores of their owners, partition after partition.

    read: reads a part of a partition; raises LookupFailedError. offsets: of each partition, the changelog offset up to which its store had
    read when the first of its items was read; complete after `frames`. What comes after it is sent as a change, even if it was in time
    for the snapshot.
    """

    read: Callable[[Cursor, PartQuery], Part]
    version: int
    partitions: int
    selection: Selection
    offsets: list[int] = field(default_factory=list)

    def frames(self) -> Iterator[bytes]:
        """Yield the items as events, one page at a time; raises LookupFailedError."""
        chosen = self.selection
        query = PartQuery(PAGE_RECORDS, chosen.area, chosen.prefix)
        if chosen.key is not None:
            # Its record is the first one of the keys that begin with it.
            query = PartQuery(1, chosen.area, chosen.key)
        for partition in range(self.partitions):
            at: Cursor | None = Cursor(self.version, partition)
            first = True
            while at is not None:
                part = self.read(at, query)
                if first:
                    self.offsets.append(part.position)
                    first = False
                frames = [event("present", record) for record in part.records if self._has(record)]
                if frames:
                    yield b"".join(frames)
                following = part.next if chosen.key is None else None
                at = None if following is None else Cursor(self.version, partition, following)

    def _has(self, record: dict[str, Any]) -> bool:
        """Whether the record is of the selected key, and not of another one that begins with it."""
        return self.selection.key is None or record["key"].encode() == self.selection.key
