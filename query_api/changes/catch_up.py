"""Brings a stream from an older position to the changes in memory: it reads the changelog with a consumer of its own for that time."""

import threading
from collections.abc import Iterator, Sequence

from query_api.changes.change_feed import BATCH_RECORDS, POLL_S, ChangeFeed
from query_api.changes.key_change import ChangeEvent
from query_api.changes.recent_changes import RecentChanges
from query_api.changes.stream_position import position_text

# At the same time in each process: each has a consumer, with its own connections and up to 32 MB of fetched records.
CATCH_UPS = 4
WAIT_S = 1.0

_free = threading.BoundedSemaphore(CATCH_UPS)


class CatchUp:
    """Reads a feed's changelog from a position on. One thread uses it.

    offsets: the position, of each partition the next offset; advances with each batch.
    """

    def __init__(self, feed: ChangeFeed, recent: RecentChanges, offsets: Sequence[int]) -> None:
        self.offsets = tuple(offsets)
        self._feed = feed
        self._recent = recent

    def batches(self, at_s: int) -> Iterator[list[tuple[bytes, ChangeEvent]]]:
        """Yield changes, each with the id of its event, until `recent` contains all that follow; an empty batch now and then.

        at_s: Unix time of the position. Raises ChangelogLostError, KafkaUnavailableError.
        """
        if self._is_done():
            return
        while not _free.acquire(timeout=WAIT_S):
            yield []
        try:
            yield from self._read(at_s)
        finally:
            _free.release()

    def _read(self, at_s: int) -> Iterator[list[tuple[bytes, ChangeEvent]]]:
        source = self._feed.source
        reader = self._feed.new_reader()
        decoder = self._feed.new_decoder()
        try:
            reader.assign(dict(enumerate(self.offsets)))
            while not self._is_done() and not self._feed.end_reason:
                found = []
                for _, _, message in reader.records(reader.poll(BATCH_RECORDS, POLL_S)):
                    change = decoder.change(message)
                    if change is not None:
                        found.append((position_text(source.version, at_s, reader.position).encode(), change))
                self.offsets = reader.position
                yield found
        finally:
            reader.close()

    def _is_done(self) -> bool:
        return self._recent.first_after(self.offsets) is not None
