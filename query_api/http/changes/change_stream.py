"""One client's stream: the present items if it asks for them, what it missed, then each change as it comes."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from include.errors import KafkaUnavailableError
from include.nodes.field_names import renamed
from query_api.changes.change_feeds import ChangeFeed, ChangelogLostError
from query_api.changes.key_change import ChangeEvent, Selection
from query_api.changes.recent_changes import (
    ChangeBatch,
    RecentChanges,
    StreamPosition,
    StreamTooSlowError,
    position_text,
)
from query_api.changes.resumption import CatchUp
from query_api.http.changes.events import (
    NO_ID,
    PLAIN,
    RETRY,
    Snapshot,
    change_frame,
    event,
    heartbeat,
    with_id,
)
from query_api.http.json_text import RecordForm
from query_api.lookup.lookup_results import LookupFailedError

HEARTBEAT_S = 10.0
# The server learns that a client is gone, and the guard that a key is revoked, when a stream has something to send, also if that is nothing.
CHECK_S = 0.5
# After these a client has to forget what it knows. After all others it continues where it was.
RESETS = {
    "promoted": "Another version of the read model is live.",
    "version-ended": "The version is no longer served.",
    "changelog-removed": "The changelog of the version was removed.",
}
INTERRUPTIONS = {
    "shutdown": "The node shuts down: connect again.",
    "too-slow": "The client is slower than the changes: connect again, to continue after the last event.",
    "not-ready": "No node has a part of the items: connect again.",
    "log-unavailable": "Kafka does not answer: connect again.",
    "internal-error": "See the node's log.",
}


@dataclass(frozen=True)
class StreamStart:
    """Where a stream begins: after `position`; without one, with the items of `snapshot`; without that, with the next change.

    follows_live: it ends when another version becomes the live one. form: of the records.
    """

    position: StreamPosition | None
    snapshot: Snapshot | None
    follows_live: bool
    form: RecordForm = PLAIN


class ChangeStream:
    """The events for one client, as bytes."""

    def __init__(
        self, feed: ChangeFeed, recent: RecentChanges, selection: Selection, start: StreamStart
    ) -> None:
        self._feed = feed
        self._recent = recent
        self._selection = selection
        self._start = start
        self._version = feed.source.version
        self._number, self._at = recent.end()
        self._sent_s = time.monotonic()

    def frames(self) -> Iterator[bytes]:
        """Yield one or more events at a time until the stream ends."""
        yield RETRY
        try:
            yield from self._events()
        except StreamTooSlowError:
            yield _end("too-slow")
        except LookupFailedError:
            yield _end("not-ready")
        except KafkaUnavailableError:
            yield _end("log-unavailable")
        except ChangelogLostError:
            yield _end("changelog-removed")

    def _events(self) -> Iterator[bytes]:
        if self._start.position is not None:
            yield from self._caught_up(self._start.position.offsets, self._start.position.at_s)
        elif self._start.snapshot is not None:
            at_s = int(time.time())
            yield with_id(NO_ID, event("snapshot", self._description()))
            yield from self._start.snapshot.frames()
            yield from self._caught_up(self._start.snapshot.offsets, at_s)
        yield with_id(self._id(), event("live", self._description()))
        self._sent_s = time.monotonic()
        while not (reason := self._end_reason()):
            yield from self._next()
        yield _end(reason)

    def _caught_up(self, offsets: Sequence[int], at_s: int) -> Iterator[bytes]:
        """Yield the changes after a position until those that follow are in memory."""
        catch_up = CatchUp(self._feed, self._recent, offsets)
        while True:
            for batch in catch_up.batches(at_s):
                frames = self._selected(batch)
                if frames:
                    yield b"".join(frames)
                elif self._is_heartbeat_due():
                    # Without a position: that of the last event remains valid.
                    yield b": heartbeat\n\n"
                else:
                    yield b""
            self._at = tuple(catch_up.offsets)
            number = self._recent.first_after(self._at)
            if number is not None or self._end_reason():
                self._number = self._number if number is None else number
                return

    def _next(self) -> Iterator[bytes]:
        """Wait for changes, and yield them as one part; without changes, yield a heartbeat, or nothing if none is due."""
        frames: list[bytes] = []
        for batch in self._recent.read(self._number, CHECK_S):
            self._number = batch.number + 1
            frames += self._of_batch(batch)
        if frames:
            self._sent_s = time.monotonic()
            yield b"".join(frames)
        elif self._is_heartbeat_due():
            yield heartbeat(self._id())
        else:
            yield b""

    def _of_batch(self, batch: ChangeBatch) -> list[bytes]:
        if self._at == batch.before:
            self._at = batch.after
            return self._selected(zip(batch.ids, batch.changes, strict=True))
        # The stream has read some partitions further than the feed had when it made the batch's ids.
        at, at_s, unread = list(self._at), int(time.time()), []
        for change in batch.changes:
            if change.offset >= at[change.partition]:
                at[change.partition] = change.offset + 1
                unread.append((position_text(self._version, at_s, tuple(at)).encode(), change))
        self._at = tuple(map(max, at, batch.after))
        return self._selected(unread)

    def _selected(
        self, changes: "Sequence[tuple[bytes, ChangeEvent]] | zip[tuple[bytes, ChangeEvent]]"
    ) -> list[bytes]:
        kind_of = self._selection.kind
        return [
            with_id(event_id, change_frame(change, kind, self._start.form))
            for event_id, change in changes
            if (kind := kind_of(change)) is not None
        ]

    def _is_heartbeat_due(self) -> bool:
        now_s = time.monotonic()
        if now_s - self._sent_s < HEARTBEAT_S:
            return False
        self._sent_s = now_s
        return True

    def _end_reason(self) -> str:
        if self._feed.end_reason:
            return self._feed.end_reason
        live = self._feed.live
        return "promoted" if self._start.follows_live and live not in {None, self._version} else ""

    def _id(self) -> bytes:
        return position_text(self._version, int(time.time()), self._at).encode()

    def _description(self) -> dict[str, object]:
        found: dict[str, object] = {"read_model": self._feed.source.read_model, "version": self._version}
        described: dict[str, object] = renamed(found, self._start.form.names)
        return described


def _end(reason: str) -> bytes:
    """Return the last event of a stream."""
    if reason in RESETS:
        # Without an id, a browser that connects again begins again.
        return with_id(NO_ID, event("reset", {"reason": reason, "detail": RESETS[reason]}))
    detail = INTERRUPTIONS.get(reason, "Connect again.")
    return event("closed", {"reason": reason, "detail": detail})
