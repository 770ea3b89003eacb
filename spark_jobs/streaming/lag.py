"""The lag of a query: the number of source events that it has not processed; and the ends of all sources, read together."""

import logging
import time
from collections.abc import Callable

from confluent_kafka import Consumer
from pyspark.sql import SparkSession

from include.errors import KafkaUnavailableError
from include.kafka.log_reading import end_offsets, end_offsets_of_topics
from include.kafka.record_ends import RecordEnds, unread_ends
from include.position import Offsets
from spark_jobs.runtime.checkpoint import committed_offsets
from spark_jobs.streaming.query_spec import QuerySpec

LOG = logging.getLogger(__name__)

INTERVAL_S = 1.0
# After this time, a backlog counts as folded: its last records may be none that the query folds.
BACKLOG_PATIENCE_S = 20.0


class SourceEnds:
    """The ends of the source topics, read at most once a second unless a query waits for events, and then of all topics that were requested."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._partitions: dict[str, int] = {}
        self._ends: dict[str, Offsets] = {}
        self._first: dict[str, tuple[float, int]] = {}
        self._changed_s: dict[str, float] = {}
        self._read_s = float("-inf")

    def of(self, topic: str, partitions: int) -> Offsets:
        """Return the end offsets of a topic, at most a second old; raises KafkaUnavailableError."""
        ends = self.known(topic, partitions, INTERVAL_S)
        if ends is None:
            # One that has no leader, or was deleted: this waits, and raises the error.
            return Offsets.of_ends(end_offsets(self._consumer, topic, partitions))
        return ends

    def known(self, topic: str, partitions: int, most_s: float) -> Offsets | None:
        """Return the end offsets of a topic, at most `most_s` old; None if it does not exist, or a partition has no leader.

        Raises KafkaUnavailableError.
        """
        if time.monotonic() >= self._read_s + most_s or topic not in self._partitions:
            self._partitions[topic] = partitions
            try:
                self._read()
            finally:
                # A request that fails takes seconds: the next one is no sooner for that.
                self._read_s = time.monotonic()
        return self._ends.get(topic)

    def unchanged_s(self, topic: str) -> float:
        """Return for how long the ends of a topic have been the same, or have not been known."""
        return time.monotonic() - self._changed_s.get(topic, time.monotonic())

    def events_per_s(self, topic: str) -> float | None:
        """Return how fast a topic has grown since its ends were first read; None before that."""
        if topic not in self._first or topic not in self._ends:
            return None
        began_s, events = self._first[topic]
        return (sum(self._ends[topic].values()) - events) / max(1.0, time.monotonic() - began_s)

    def _read(self) -> None:
        before, now_s = self._ends, time.monotonic()
        found = end_offsets_of_topics(self._consumer, self._partitions)
        self._ends = {topic: Offsets.of_ends(ends) for topic, ends in found.items()}
        for topic in self._partitions:
            ends = self._ends.get(topic)
            if ends is not None:
                self._first.setdefault(topic, (now_s, sum(ends.values())))
            if ends != before.get(topic) or topic not in self._changed_s:
                self._changed_s[topic] = now_s


class CheckpointLag:
    """How far the checkpoint of a query is behind its source. Nothing of it is known before `measure`.

    is_committed: whether the query has committed. offsets: where its next run begins: the source offsets that the checkpoint covers, at least
    those of the specification.
    """

    def __init__(self, spark: SparkSession, consumer: Consumer, spec: QuerySpec) -> None:
        self._spark = spark
        self._consumer = consumer
        self._spec = spec
        self.is_committed = False
        self.offsets = Offsets()

    def committed(self) -> Offsets:
        """Read the source offsets of the newest commit."""
        endpoints = self._spec.endpoints
        return committed_offsets(self._spark, endpoints.checkpoint, endpoints.source_topic)

    def measure(self) -> int:
        """Return the number of events after the newest commit; raises KafkaUnavailableError."""
        endpoints = self._spec.endpoints
        ends = Offsets.of_ends(end_offsets(self._consumer, endpoints.source_topic, endpoints.partitions))
        committed = self.committed()
        self.is_committed, self.offsets = bool(committed), committed.merge(self._spec.starts)
        return self.offsets.events_until(
            unread_ends(self._consumer, endpoints.source_topic, ends, self.offsets)
        )


class LagWatch:
    """Measures the lag without asking Spark, which reports a query's progress only when it commits.

    ends: of all sources. committed: reads the source offsets of the query's last commit.
    """

    def __init__(
        self,
        consumer: Consumer,
        ends: SourceEnds,
        spec: QuerySpec,
        committed: Callable[[], Offsets],
    ) -> None:
        self._ends = ends
        self._spec = spec
        self._committed = committed
        self._processed = spec.starts
        self._record_ends = RecordEnds(consumer)
        self._due_s = 0.0
        self._began_s = 0.0
        self._backlog: Offsets | None = None
        self._folded_s: float | None = None

    def begin(self) -> None:
        """Note that the query starts: what its source contains now is its backlog."""
        self._began_s = time.monotonic()
        self._backlog = self._folded_s = None

    def current_for_s(self) -> float:
        """Return how long ago the query had folded its backlog, or had started if its output does not tell; negative before that."""
        if self._folded_s is not None:
            return time.monotonic() - self._folded_s
        running_for_s = time.monotonic() - self._began_s
        return running_for_s if self._spec.written is None else running_for_s - BACKLOG_PATIENCE_S

    def measure(self) -> int | None:
        """Return the lag, at most once a second; None if it is not due yet, the query's output does not tell, or Kafka does not answer.

        A lag within the bound of the query's triggers may be given as higher than it is, up to that bound: the records that tell how
        far the query is are read only if it may be further behind.
        """
        if self._spec.written is None or time.monotonic() < self._due_s:
            return None
        self._due_s = time.monotonic() + INTERVAL_S
        try:
            return self._events(self._spec.written)
        except KafkaUnavailableError as error:
            LOG.warning("the lag of query %s could not be measured: %s", self._spec.name, error)
            return None

    def _events(self, written: Callable[[], Offsets]) -> int:
        endpoints = self._spec.endpoints
        ends = self._ends.of(endpoints.source_topic, endpoints.partitions)
        if self._folded_s is None:
            self._follow_backlog(ends, written)
        if self._processed.events_until(ends) > self._spec.triggers.catch_up_threshold_events:
            self._processed = self._processed.merge(self._committed()).merge(written())
        if self._processed.events_until(ends) > self._spec.triggers.catch_up_threshold_events:
            ends = self._record_ends.unread(endpoints.source_topic, ends, self._processed)
        return self._processed.events_until(ends)

    def _follow_backlog(self, ends: Offsets, written: Callable[[], Offsets]) -> None:
        if self._backlog is None:
            self._backlog = ends
            self._processed = self._processed.merge(self._committed())
        self._processed = self._processed.merge(written())
        topic = self._spec.endpoints.source_topic
        if self._processed.covers(self._record_ends.unread(topic, self._backlog, self._processed)):
            self._folded_s = time.monotonic()
