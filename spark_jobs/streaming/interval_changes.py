"""Changes how often queries commit: one query at a time, and rarely, so that the others are not disturbed. Starts those that have waited for events."""

import logging
import time
from collections.abc import Collection, Iterable

from confluent_kafka import Consumer

from include.errors import KafkaUnavailableError
from include.kafka.record_ends import RecordEnds
from include.position import Offsets
from include.stream.query_reports import CONTINUOUS, Phase
from spark_jobs.streaming.commits.commit_interval import Change
from spark_jobs.streaming.lag import SourceEnds
from spark_jobs.streaming.supervised_query import SupervisedQuery

LOG = logging.getLogger(__name__)

CHECK_INTERVAL_S = 1.0
# How old the ends are for which a query that waits is started.
WAKE_INTERVAL_S = 0.2
# After the start of a query that has waited, until one that waits for others may start; and between two queries that return to the set interval.
RETURN_GAP_S = 2.0
# The ends of a source that have not changed for so long may be those of transactions rather than of events.
UNCHANGED_S = 5.0
# A partition has no leader for less than this while a broker is replaced. A query then starts, and fails as any whose source is missing.
WITHOUT_LEADER_S = 30.0
# Changes to the long interval wait for other queries, and one that returns is due first.
ORDER = (Change.WAIT, Change.AS_SET, Change.RARELY)


class IntervalChanges:
    """Restarts or stops the queries whose interval has to change, one at a time, and starts those that wait once their sources have events."""

    def __init__(self, consumer: Consumer, ends: SourceEnds) -> None:
        self._ends = ends
        self._record_ends = RecordEnds(consumer)
        self._check_at_s = self._return_at_s = 0.0

    def poll(self, queries: Collection[SupervisedQuery]) -> None:
        """Change at most one query; call it about every second."""
        if time.monotonic() < self._check_at_s:
            return
        self._check_at_s = time.monotonic() + CHECK_INTERVAL_S
        try:
            self._change(queries)
        except KafkaUnavailableError as error:
            LOG.warning("the intervals of commits are not checked: %s", error)

    def wake(self, queries: Iterable[SupervisedQuery]) -> bool:
        """Have each query that waits start at its next `poll` if its source has changed; return whether one has to. Call it several times a second."""
        waiting = [query for query in queries if query.phase is Phase.WAITING]
        try:
            # Folds first: dead letters would only delay them.
            changed = [query for query in waiting if self._has_changed(query)]
        except KafkaUnavailableError as error:
            LOG.warning("whether sources have events is not known: %s", error)
            return False
        first = [query for query in changed if not query.spec.waits_for_others]
        if not first and time.monotonic() >= self._return_at_s:
            first = changed[:1]
        for query in first:
            self._return_at_s = time.monotonic() + RETURN_GAP_S
            query.wake()
        return bool(first)

    def _has_changed(self, query: SupervisedQuery) -> bool:
        """Return whether a source differs from what is committed; where it ends earlier, the start of the query finds what is lost."""
        topic, committed = query.spec.endpoints.source_topic, query.checkpoint.offsets
        ends = self._ends.known(topic, query.spec.endpoints.partitions, WAKE_INTERVAL_S)
        if ends is None:
            return self._ends.unchanged_s(topic) >= WITHOUT_LEADER_S
        # The usual case, several times a second for each query.
        if ends == committed:
            return False
        if any(end < committed.of(partition) for partition, end in ends.items()):
            return True
        return not committed.covers(self._record_ends.unread(topic, ends, committed))

    def _change(self, queries: Collection[SupervisedQuery]) -> None:
        found = {query: change for query in queries if (change := self._due_change(query)) is not None}
        due = sorted(found, key=lambda query: ORDER.index(found[query]))
        if not due:
            return
        query, change = due[0], found[due[0]]
        if change is Change.AS_SET and time.monotonic() < self._return_at_s:
            return
        if change is Change.RARELY and not all(map(_is_settled, queries)):
            return
        if change is Change.AS_SET:
            self._return_at_s = time.monotonic() + RETURN_GAP_S
        query.change_commits(change)

    def _due_change(self, query: SupervisedQuery) -> Change | None:
        if query.phase not in CONTINUOUS or query.phase is Phase.WAITING:
            return None
        topic, committed = query.spec.endpoints.source_topic, query.newest_commit
        ends = self._ends.of(topic, query.spec.endpoints.partitions)
        if not query.batches.committed and not query.interval.is_long:
            # The first commit is at the set interval, so that what its logs contain is noted soon.
            return None
        return query.interval.due_change(self._uncommitted(topic, ends, committed))

    def _uncommitted(self, topic: str, ends: Offsets, committed: Offsets) -> int:
        if not committed.covers(ends) and self._ends.unchanged_s(topic) >= UNCHANGED_S:
            ends = self._record_ends.unread(topic, ends, committed)
        return committed.events_until(ends)


def _is_settled(query: SupervisedQuery) -> bool:
    """Return whether the query has committed since it started: until then it compiles code, for which it needs every core."""
    if query.phase in {Phase.STARTING, Phase.CATCHING_UP}:
        return False
    return (
        query.phase is not Phase.REAL_TIME or query.running_for_s >= query.spec.triggers.real_time_interval_s
    )
