"""Server-Sent Events as text (WHATWG HTML, section 9.2)."""

from collections.abc import Mapping

from query_api.changes.key_change import ChangeEvent, ChangeKind
from query_api.http.json_text import dumps
from query_api.http.lookups.record_json import record_fields

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


def change_frame(change: ChangeEvent, kind: ChangeKind) -> bytes:
    """Return the event of a change, without its id. All streams share it."""
    frame = change.frames.get(kind)
    if frame is None:
        if kind is ChangeKind.CHANGED and change.record is not None:
            data = record_fields(change.key, change.record)
        else:
            data = {"key": change.key.decode(), "event_count": change.event_count}
        frame = change.frames[kind] = event(kind.value, data)
    return frame
