"""The lag of a running query: the number of source events that it has not processed."""

import logging
import time
from collections.abc import Callable

from confluent_kafka import Consumer

from include.errors import KafkaUnavailableError
from include.kafka.log_reading import end_offsets
from include.kafka.record_ends import RecordEnds
from include.position import Offsets
from spark_jobs.streaming.query_spec import QuerySpec

LOG = logging.getLogger(__name__)

INTERVAL_S = 1.0


class LagWatch:
    """Measures the lag without asking Spark, which reports a query's progress only when it commits.

    written: the source offsets after the newest records of the query's output. committed: reads the source offsets of the query's last commit.
    """

    def __init__(
        self,
        consumer: Consumer,
        spec: QuerySpec,
        written: Callable[[], Offsets],
        committed: Callable[[], Offsets],
    ) -> None:
        self._consumer = consumer
        self._spec = spec
        self._written = written
        self._committed = committed
        self._processed = spec.starts
        self._record_ends = RecordEnds(consumer)
        self._due_s = 0.0

    def measure(self) -> int | None:
        """Return the lag, at most once a second; None if it is not due yet, or Kafka does not answer.

        A lag within the bound of the query's triggers may be given as higher than it is, up to that bound: the records that tell how
        far the query is are read only if it may be further behind.
        """
        if time.monotonic() < self._due_s:
            return None
        self._due_s = time.monotonic() + INTERVAL_S
        try:
            return self._events()
        except KafkaUnavailableError as error:
            LOG.warning("the lag of query %s could not be measured: %s", self._spec.name, error)
            return None

    def _events(self) -> int:
        endpoints = self._spec.endpoints
        ends = Offsets.of_ends(end_offsets(self._consumer, endpoints.source_topic, endpoints.partitions))
        if self._processed.events_until(ends) > self._spec.triggers.catch_up_threshold_events:
            self._processed = self._processed.merge(self._committed()).merge(self._written())
        if self._processed.events_until(ends) > self._spec.triggers.catch_up_threshold_events:
            ends = self._record_ends.unread(endpoints.source_topic, ends, self._processed)
        return self._processed.events_until(ends)
