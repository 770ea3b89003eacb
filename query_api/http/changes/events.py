"""The events of a stream as text (Server-Sent Events; WHATWG HTML, section 9.2), and those of the present items at its beginning."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from include.nodes.field_names import renamed
from query_api.changes.key_change import ChangeEvent, ChangeKind, Selection
from query_api.http.json_text import RecordForm, dumps, record_fields
from query_api.lookup.model_pages import Cursor, Part, PartQuery

# Milliseconds after which a browser connects again.
RETRY = b"retry: 2000\n\n"
# An empty id: a client that loses the connection does not continue after an event, but begins again.
NO_ID = b""


def event(name: str, data: Mapping[str, object]) -> bytes:
    """Return an event without an id."""
    return f"event: {name}\ndata: {dumps(data)}\n\n".encode()


def with_id(event_id: bytes, frame: bytes) -> bytes:
    """Return an event with an id."""
    return b"id: %s\n%s" % (event_id, frame)


def heartbeat(event_id: bytes) -> bytes:
    """Return a comment that shows that the connection is alive, and moves the position without an event."""
    return b": heartbeat\nid: %s\n\n" % event_id


PLAIN = RecordForm()


def change_frame(change: ChangeEvent, kind: ChangeKind, form: RecordForm = PLAIN) -> bytes:
    """Return the event of a change, without its id. All streams of the same form share it."""
    frame = change.frames.get((kind, form))
    if frame is None:
        if kind is ChangeKind.CHANGED and change.record is not None:
            data = record_fields(change.key, change.record, text_decimals=form.text_decimals)
        else:
            data = {"key": change.key.decode(), "event_count": change.event_count}
        frame = change.frames[kind, form] = event(kind.value, renamed(data, form.names))
    return frame


PAGE_RECORDS = 500


@dataclass
class Snapshot:
    """The items that a stream selects, read from the stores of their owners, partition after partition.

    read: reads a part of a partition; raises LookupFailedError. offsets: of each partition, the changelog offset up to which its store had
    read when the first of its items was read; complete after `frames`. What comes after it is sent as a change, even if it was in time
    for the snapshot. form: of the records.
    """

    read: Callable[[Cursor, PartQuery], Part]
    version: int
    partitions: int
    selection: Selection
    offsets: list[int] = field(default_factory=list)
    form: RecordForm = PLAIN

    def frames(self) -> Iterator[bytes]:
        """Yield the items as events, one page at a time; raises LookupFailedError."""
        chosen, names = self.selection, self.form.names
        query = PartQuery(PAGE_RECORDS, chosen.area, chosen.prefix, self.form.text_decimals)
        if chosen.key is not None:
            # Its record is the first one of the keys that begin with it.
            query = PartQuery(1, chosen.area, chosen.key, self.form.text_decimals)
        for partition in range(self.partitions):
            at: Cursor | None = Cursor(self.version, partition)
            first = True
            while at is not None:
                part = self.read(at, query)
                if first:
                    self.offsets.append(part.position)
                    first = False
                frames = [
                    event("present", renamed(record, names)) for record in part.records if self._has(record)
                ]
                if frames:
                    yield b"".join(frames)
                following = part.next if chosen.key is None else None
                at = None if following is None else Cursor(self.version, partition, following)

    def _has(self, record: dict[str, Any]) -> bool:
        """Whether the record is of the selected key, and not of another one that begins with it."""
        return self.selection.key is None or record["key"].encode() == self.selection.key
