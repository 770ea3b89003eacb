"""Restarts queries whose interval of commits has to change: one at a time, and rarely, so that the others are not disturbed."""

import logging
import time
from collections.abc import Collection

from confluent_kafka import Consumer

from include.errors import KafkaUnavailableError
from include.kafka.record_ends import RecordEnds
from include.stream.query_reports import Phase
from spark_jobs.streaming.lag import SourceEnds
from spark_jobs.streaming.supervised_query import SupervisedQuery

LOG = logging.getLogger(__name__)

CHECK_INTERVAL_S = 1.0
# Between two queries that return to the set interval.
RETURN_GAP_S = 2.0
# The ends of a source that have not changed for so long may be those of transactions rather than of events.
UNCHANGED_S = 5.0


class IntervalChanges:
    """Restarts the queries whose interval has to change, one at a time."""

    def __init__(self, consumer: Consumer, ends: SourceEnds) -> None:
        self._ends = ends
        self._record_ends = RecordEnds(consumer)
        self._check_at_s = self._return_at_s = 0.0

    def poll(self, queries: Collection[SupervisedQuery]) -> None:
        """Restart at most one query; call it about every second."""
        if time.monotonic() < self._check_at_s:
            return
        self._check_at_s = time.monotonic() + CHECK_INTERVAL_S
        try:
            self._change(queries)
        except KafkaUnavailableError as error:
            LOG.warning("the intervals of commits are not checked: %s", error)

    def _change(self, queries: Collection[SupervisedQuery]) -> None:
        due = [query for query in queries if self._must_change(query)]
        returning = [query for query in due if query.interval.is_long]
        if returning and time.monotonic() >= self._return_at_s:
            self._return_at_s = time.monotonic() + RETURN_GAP_S
            returning[0].change_interval()
        elif due and not returning and all(map(_is_settled, queries)):
            due[0].change_interval()

    def _must_change(self, query: SupervisedQuery) -> bool:
        if query.phase is not Phase.REAL_TIME:
            return False
        topic, committed = query.spec.endpoints.source_topic, query.newest_commit
        ends = self._ends.of(topic, query.spec.endpoints.partitions)
        if query.batches.last is None and not query.interval.is_long:
            # The first commit is at the set interval, so that what its logs contain is noted soon.
            return False
        if not committed.covers(ends) and self._ends.unchanged_s(topic) >= UNCHANGED_S:
            ends = self._record_ends.unread(topic, ends, committed)
        return query.interval.must_change(committed.events_until(ends))


def _is_settled(query: SupervisedQuery) -> bool:
    """Return whether the query has committed since it started: until then it compiles code, for which it needs every core."""
    if query.phase in {Phase.STARTING, Phase.CATCHING_UP}:
        return False
    return (
        query.phase is not Phase.REAL_TIME or query.running_for_s >= query.spec.triggers.real_time_interval_s
    )
