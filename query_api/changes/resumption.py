"""Whether a stream can continue after the position that a client gives, and the changes between that position and those in memory.

The catch-up reads the changelog with a consumer of its own for that time.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing

from query_api.changes.change_feeds import BATCH_RECORDS, POLL_S, ChangeFeed
from query_api.changes.key_change import ChangeEvent
from query_api.changes.recent_changes import RecentChanges, StreamPosition, position_text

# Removals are kept on the changelog for a day (Kafka's delete.retention.ms): a client that was away for longer may miss one.
RESUME_LIMIT_S = 12 * 3600
# At the same time in each process: each has a consumer, with its own connections and up to 32 MB of fetched records.
CATCH_UPS = 4
WAIT_S = 1.0
_free = threading.BoundedSemaphore(CATCH_UPS)


def why_not_resumable(position: StreamPosition, feed: ChangeFeed, recent: RecentChanges) -> str:
    """Return why changes after a position can be missing from the feed's changelog; empty if none can.

    Raises KafkaUnavailableError.
    """
    source = feed.source
    if position.version != source.version or len(position.offsets) != source.partitions:
        return f"the position is of version {position.version}, and the stream of version {source.version}"
    age_s = time.time() - position.at_s
    if age_s > RESUME_LIMIT_S:
        return f"the position is {age_s / 3600:.0f} h old, and removals after it may no longer be on the changelog"
    _, end = recent.end()
    if any(given > known for given, known in zip(position.offsets, end, strict=True)):
        # Another node, or another process of this one, may have read further than this process.
        with closing(feed.new_reader()) as reader:
            bounds = reader.bounds(source.partitions)
        if any(given > high for given, (_, high) in zip(position.offsets, bounds, strict=True)):
            return "the changelog ends before the position: it was created again"
    return ""


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
