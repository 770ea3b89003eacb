"""The feeds of this process: one for each version of a read model that has streams.

One thread and one consumer read the changelog of a version for all of its streams. The source is the changelog and not the stores: it has
all partitions, and its positions mean the same on every node, so that a client can continue on another one.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import KafkaError

from include.declarations.api import Location
from include.errors import KafkaUnavailableError
from include.kafka.compacted_topics import ChangelogReader, changelog_consumer
from include.kafka.schema_registry import SchemaRegistry
from include.settings import KafkaConnection, Settings
from query_api.changes.changelog_decoder import ChangelogDecoder
from query_api.changes.key_change import ChangeEvent
from query_api.changes.recent_changes import RecentChanges, position_text
from query_api.cluster.node_state import NodeState

# Reading begins so many records before the end, of all partitions: clients that come back soon find what they missed in memory.
READ_BEFORE_END = 2000
RETRY_S = 1.0
# Changes within this time wake the streams once.
WAKE_INTERVAL_S = 0.02
# Of the values of a batch, which ends with the record that exceeds it.
BATCH_BYTES = 64 * 1024
POLL_S = 0.25
# A stream sends the changes of a batch as one part, and a client that does not read leaves some such parts in memory.
BATCH_RECORDS = 200
CLIENT_ID = "foldlake-changes"
# After these errors the topic is not the one that was read before, or no longer has the offset.
LOST = {"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE", "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_PARTITION"}

log = logging.getLogger(__name__)
# A feed without streams is kept for this time: clients that come back find what they missed in memory.
KEPT_S = 60.0
CHECK_S = 5.0


class ChangelogLostError(Exception):
    """The changelog was removed, or no longer has the records that come next."""


@dataclass(frozen=True)
class FeedSource:
    """What a feed reads: a version of a read model, its changelog, and where its items are."""

    read_model: str
    version: int
    topic: str
    partitions: int
    location: Location | None


class ChangeFeed:
    """Reads a changelog into `recent` until `stop`. Streams read from there.

    recent: None until the reading has reached the end that the changelog had at the beginning.
    live: number of the live version, as far as this node knows. end_reason: why there will be no further changes; empty if there will.
    """

    def __init__(
        self,
        kafka: KafkaConnection,
        registry: SchemaRegistry,
        source: FeedSource,
        state: Callable[[], NodeState | None],
    ) -> None:
        self.source = source
        self.recent: RecentChanges | None = None
        self.live: int | None = None
        self.end_reason = ""
        self._kafka = kafka
        self._state = state
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._registry = registry
        self._observe()
        threading.Thread(
            target=self._run, name=f"changes of {source.read_model} v{source.version}", daemon=True
        ).start()

    def wait_until_ready(self, timeout_s: float) -> RecentChanges | None:
        """Return `recent` once the reading has reached the end; None if it does not within the timeout."""
        self._ready.wait(timeout_s)
        return self.recent

    def new_reader(self) -> ChangelogReader:
        """Return another reader of the same changelog, which raises ChangelogLostError."""
        topic = self.source.topic

        def on_error(error: KafkaError, _partition: int | None) -> None:
            # After another error, the client tries again by itself.
            if error.name() in LOST:
                raise ChangelogLostError(f"{topic}: {error.str()}")

        return ChangelogReader(changelog_consumer(self._kafka, CLIENT_ID), topic, on_error)

    def new_decoder(self) -> ChangelogDecoder:
        """Return a decoder that knows no key yet."""
        return ChangelogDecoder(self._registry, self.source.location, self._stopping)

    def stop(self, reason: str) -> None:
        """End all streams for this reason."""
        if not self.end_reason:
            self.end_reason = reason
        self._stopping.set()
        if self.recent is not None:
            self.recent.close()

    def _run(self) -> None:
        decoder = self.new_decoder()
        while not self._stopping.is_set():
            reader = self.new_reader()
            try:
                self._read(reader, decoder)
            except KafkaUnavailableError as error:
                log.warning("changes of %s wait for Kafka: %s", self.source.read_model, error)
                self._stopping.wait(RETRY_S)
            except ChangelogLostError as error:
                log.warning("the streams of %s end: %s", self.source.read_model, error)
                self.stop("changelog-removed")
            except Exception:
                log.exception("the streams of %s end", self.source.read_model)
                self.stop("internal-error")
            finally:
                reader.close()

    def _read(self, reader: ChangelogReader, decoder: ChangelogDecoder) -> None:
        """Read from a little before the end; after Kafka was unavailable, from where the reading stopped."""
        recent = self.recent
        if recent is None:
            bounds = reader.bounds(self.source.partitions)
            before = READ_BEFORE_END // len(bounds)
            start = tuple(max(low, high - before) for low, high in bounds)
            goal = [high for _, high in bounds]
            recent = RecentChanges(start)
        else:
            _, start = recent.end()
            goal = []
        reader.assign(dict(enumerate(start)))
        while not self._stopping.is_set():
            self._append(reader, decoder, recent)
            if self.recent is None and all(at >= end for at, end in zip(reader.position, goal, strict=True)):
                self.recent = recent
                self._ready.set()
            if self._observe():
                recent.wake()

    def _append(self, reader: ChangelogReader, decoder: ChangelogDecoder, recent: RecentChanges) -> None:
        """Append what has arrived, in batches of a limited size, and wake the streams once."""
        changes: list[ChangeEvent] = []
        ids: list[bytes] = []
        value_bytes = 0
        at_s = int(time.time())
        for _, _, message in reader.records(reader.poll(BATCH_RECORDS, POLL_S)):
            change = decoder.change(message)
            if change is not None:
                changes.append(change)
                ids.append(position_text(self.source.version, at_s, reader.position).encode())
                value_bytes += len(message)
            if value_bytes >= BATCH_BYTES:
                recent.append(tuple(changes), tuple(ids), reader.position, value_bytes)
                changes, ids, value_bytes = [], [], 0
        after = reader.position
        if after != recent.end()[1]:
            recent.append(tuple(changes), tuple(ids), after, value_bytes)
            recent.wake()
            self._stopping.wait(WAKE_INTERVAL_S)

    def _observe(self) -> bool:
        """Note which version is live, and whether this one is active; return whether that has changed."""
        state = self._state()
        model = None if state is None else state.models.get(self.source.read_model)
        if model is None:
            return False
        changed = model.live != self.live
        self.live = model.live
        if self.source.version not in model.versions and model.versions:
            self.stop("version-ended")
        return changed


class ChangeFeeds:
    """Starts a feed for the first stream, and stops it some time after the last one. Thread-safe."""

    def __init__(self, settings: Settings, state: Callable[[], NodeState | None]) -> None:
        self.kafka = settings.kafka_connection
        self.registry = SchemaRegistry(settings.registry.connection)
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
                found = self._feeds[source] = ChangeFeed(self.kafka, self.registry, source, self._state)
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
