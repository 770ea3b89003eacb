"""Whether a stream can continue after the position that a client gives."""

import time
from contextlib import closing

from query_api.changes.change_feed import ChangeFeed
from query_api.changes.recent_changes import RecentChanges
from query_api.changes.stream_position import StreamPosition

# Removals are kept on the changelog for a day (Kafka's delete.retention.ms): a client that was away for longer may miss one.
RESUME_LIMIT_S = 12 * 3600


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
