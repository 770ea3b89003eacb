"""The newest changes of a read model, in memory: each stream reads them at its own pace, and none has a queue of its own.

So the memory does not depend on the number of streams. A stream that is slower than the changes falls behind the oldest batch, and ends.
The position of a stream is also the id of its events: a client that returns it continues after that event.
"""

import re
import threading
from collections import deque
from dataclasses import dataclass

from query_api.changes.key_change import ChangeEvent

# Longer than any topic's: 1,024 partitions with offsets of 20 digits.
MAX_CHARACTERS = 32_768
TEXT = re.compile(r"(\d{1,9})\.(\d{1,12})\.(\d{1,19}(?:-\d{1,19})*)", re.ASCII)
MAX_CHANGES = 20_000
# Of the records' values as they are on the changelog; decoded and rendered, they take some ten times as much.
MAX_BYTES = 4 * 1024 * 1024
# What a stream reads and sends at a time. A client that does not read leaves some such parts in memory, besides the shared changes.
READ_CHANGES = 200
READ_BYTES = 64 * 1024


class InvalidPositionError(ValueError):
    """The text is not the id of an event."""


@dataclass(frozen=True)
class StreamPosition:
    """How far a stream has read the changelog of a version.

    at_s: Unix time in seconds at which this was its position. offsets: of each partition, the first offset that was not read.
    """

    version: int
    at_s: int
    offsets: tuple[int, ...]

    @property
    def text(self) -> str:
        """The position as text, such as `1.1790000000.12-0-7-3`."""
        return position_text(self.version, self.at_s, self.offsets)

    @classmethod
    def parse(cls, text: str) -> "StreamPosition":
        """Read the text form; raises InvalidPositionError."""
        matched = TEXT.fullmatch(text) if len(text) <= MAX_CHARACTERS else None
        if matched is None:
            raise InvalidPositionError(text[:100])
        offsets = tuple(int(offset) for offset in matched[3].split("-"))
        return cls(int(matched[1]), int(matched[2]), offsets)


def position_text(version: int, at_s: int, offsets: tuple[int, ...]) -> str:
    """Return the text form of a position."""
    return f"{version}.{at_s}.{'-'.join(map(str, offsets))}"


@dataclass(frozen=True)
class ChangeBatch:
    """Changes in the order in which all streams send them.

    ids: of each change, the id of its event. before, after: the position before and after the batch, the offset of each partition.
    """

    number: int
    changes: tuple[ChangeEvent, ...]
    ids: tuple[bytes, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    value_bytes: int


class StreamTooSlowError(Exception):
    """The stream has not read changes that are no longer in memory."""


class RecentChanges:
    """The batches of one version of a read model. One thread appends, any number of threads read."""

    def __init__(self, start: tuple[int, ...], max_changes: int = MAX_CHANGES) -> None:
        """Begin at a position, the offset of each partition."""
        self._batches: deque[ChangeBatch] = deque()
        self._changed = threading.Condition()
        self._start = self._end = start
        self._next_number = 0
        self._changes = self._bytes = 0
        self._max_changes = max_changes
        self.is_closed = False

    def append(
        self,
        changes: tuple[ChangeEvent, ...],
        ids: tuple[bytes, ...],
        after: tuple[int, ...],
        value_bytes: int,
    ) -> None:
        """Append a batch, and remove the oldest ones if there are too many changes; `wake` shows it to the streams that wait."""
        with self._changed:
            self._batches.append(ChangeBatch(self._next_number, changes, ids, self._end, after, value_bytes))
            self._next_number += 1
            self._end = after
            self._changes += max(1, len(changes))
            self._bytes += value_bytes
            while len(self._batches) > 1 and (self._changes > self._max_changes or self._bytes > MAX_BYTES):
                oldest = self._batches.popleft()
                self._changes -= max(1, len(oldest.changes))
                self._bytes -= oldest.value_bytes
                self._start = oldest.after

    def wake(self) -> None:
        """Wake the streams that wait."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Wake the streams for the last time: nothing follows."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()

    @property
    def start(self) -> tuple[int, ...]:
        """The position before the oldest batch."""
        return self._start

    def end(self) -> tuple[int, tuple[int, ...]]:
        """Return the number of the next batch, and the position before it."""
        with self._changed:
            return self._next_number, self._end

    def first_after(self, position: tuple[int, ...]) -> int | None:
        """Return the number of the first batch with a change after a position; None if such changes are no longer in memory."""
        with self._changed:
            if not _covers(position, self._start):
                return None
            for batch in self._batches:
                if not _covers(position, batch.after):
                    return batch.number
            return self._next_number

    def read(self, number: int, timeout_s: float) -> list[ChangeBatch]:
        """Return the next batches from this number on, with some READ_CHANGES changes; waits for the first one.

        Empty after the timeout, or when woken for another reason. Raises StreamTooSlowError if the batch is no longer in memory.
        """
        with self._changed:
            if number >= self._next_number and not self.is_closed:
                self._changed.wait(timeout_s)
            if number >= self._next_number:
                return []
            oldest = self._batches[0].number
            if number < oldest:
                raise StreamTooSlowError
            found: list[ChangeBatch] = []
            changes = value_bytes = 0
            # By index: a deque finds an item near its end at once, and most streams read there.
            for index in range(number - oldest, len(self._batches)):
                batch = self._batches[index]
                if found and (changes >= READ_CHANGES or value_bytes >= READ_BYTES):
                    break
                found.append(batch)
                changes += len(batch.changes)
                value_bytes += batch.value_bytes
            return found


def _covers(position: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether a position is not before another one in any partition."""
    return all(mine >= theirs for mine, theirs in zip(position, other, strict=True))
