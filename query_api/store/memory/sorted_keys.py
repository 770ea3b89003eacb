"""A sorted set of keys: a list of short lists, so that an insertion moves a few thousand references instead of all.

The library `sortedcontainers` works the same way; a store needs only these few operations.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator

MAX_CHUNK_KEYS = 2_000


class SortedKeys:
    """A sorted set of keys. Not thread-safe."""

    def __init__(self) -> None:
        self._chunks: list[list[bytes]] = []
        self._greatest: list[bytes] = []  # of each chunk, none of which is empty

    def add(self, key: bytes) -> None:
        """Add a key that is not in the set."""
        if not self._chunks:
            self._chunks.append([key])
            self._greatest.append(key)
            return
        at = min(bisect_left(self._greatest, key), len(self._chunks) - 1)
        chunk = self._chunks[at]
        insort(chunk, key)
        if len(chunk) > MAX_CHUNK_KEYS:
            middle = len(chunk) // 2
            self._chunks.insert(at + 1, chunk[middle:])
            self._greatest.insert(at + 1, chunk[-1])
            del chunk[middle:]
        self._greatest[at] = chunk[-1]

    def remove(self, key: bytes) -> None:
        """Remove a key that is in the set."""
        at = bisect_left(self._greatest, key)
        chunk = self._chunks[at]
        del chunk[bisect_left(chunk, key)]
        if chunk:
            self._greatest[at] = chunk[-1]
        else:
            del self._chunks[at], self._greatest[at]

    def since(self, first: bytes) -> Iterator[bytes]:
        """Return the keys that are `first` or greater, in order; the set must not change during the iteration."""
        at = bisect_left(self._greatest, first)
        for chunk in self._chunks[at : at + 1]:
            yield from chunk[bisect_left(chunk, first) :]
        for number in range(at + 1, len(self._chunks)):
            yield from self._chunks[number]
