"""The feeds of this process: one for each version of a read model that has streams."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from include.kafka.schema_registry import SchemaRegistry
from include.settings import Settings
from query_api.changes.change_feed import ChangeFeed, FeedSource
from query_api.cluster.node_state import NodeState

# A feed without streams is kept for this time: clients that come back find what they missed in memory.
KEPT_S = 60.0
CHECK_S = 5.0


class ChangeFeeds:
    """Starts a feed for the first stream, and stops it some time after the last one. Thread-safe."""

    def __init__(self, settings: Settings, state: Callable[[], NodeState | None]) -> None:
        self.bootstrap_servers = settings.kafka.bootstrap_servers
        self.registry = SchemaRegistry(settings.registry.url)
        self.is_stopped = False
        self._state = state
        self._lock = threading.Lock()
        self._feeds: dict[FeedSource, ChangeFeed] = {}
        self._streams: dict[FeedSource, int] = {}
        self._unused_since_s: dict[FeedSource, float] = {}

    @contextmanager
    def feed(self, source: FeedSource) -> Iterator[ChangeFeed]:
        """Use the feed of a version in a block."""
        with self._lock:
            found = self._feeds.get(source)
            if found is None or found.end_reason:
                if not self._feeds:
                    threading.Thread(target=self._run, name="unused feeds", daemon=True).start()
                found = self._feeds[source] = ChangeFeed(
                    self.bootstrap_servers, self.registry, source, self._state
                )
            self._streams[source] = self._streams.get(source, 0) + 1
            self._unused_since_s.pop(source, None)
        try:
            yield found
        finally:
            with self._lock:
                self._streams[source] -= 1
                if not self._streams[source]:
                    del self._streams[source]
                    self._unused_since_s[source] = time.monotonic()

    def stop(self) -> None:
        """End all streams: the node shuts down."""
        self.is_stopped = True
        for feed in list(self._feeds.values()):
            feed.stop("shutdown")

    def _run(self) -> None:
        """Stop unused feeds until there is none."""
        while True:
            time.sleep(CHECK_S)
            with self._lock:
                for source, since_s in list(self._unused_since_s.items()):
                    if time.monotonic() - since_s > KEPT_S or self._feeds[source].end_reason:
                        del self._unused_since_s[source]
                        self._feeds.pop(source).stop("unused")
                if not self._feeds:
                    return
