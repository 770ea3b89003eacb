"""Queries change their commits one at a time, and those that wait start within a moment of a change of their source.

A fake replaces each running query, and a number of events replaces the topic.
"""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from include.errors import KafkaUnavailableError
from include.kafka.record_ends import RecordEnds
from include.position import Offsets
from include.stream.query_reports import Phase
from spark_jobs.streaming import interval_changes, lag
from spark_jobs.streaming.commits.commit_interval import Change
from spark_jobs.streaming.interval_changes import (
    RETURN_GAP_S,
    WAKE_INTERVAL_S,
    WITHOUT_LEADER_S,
    IntervalChanges,
)
from spark_jobs.streaming.lag import SourceEnds
from spark_jobs.streaming.query_spec import QuerySpec
from tests.support.query_specs import NO_CONSUMER, TRIGGERS, spec
from tests.support.waiting import MovedClock

SET_S = TRIGGERS.real_time_interval_s
FOLD = replace(spec(), idle_events=0, triggers=replace(TRIGGERS, idle_interval_s=10 * SET_S))


COMMITTED = Offsets({0: 5, 1: 5})


class Query:
    """Stands for a query that runs, for which a change is due; `seen` are the numbers of uncommitted events."""

    def __init__(self, name: str, due: Change | None = None, *, is_long: bool = False) -> None:
        self.name = name
        self.spec: QuerySpec = FOLD
        self.phase = Phase.REAL_TIME
        self.running_for_s = float(SET_S)
        self.batches = SimpleNamespace(committed=COMMITTED)
        self.checkpoint = SimpleNamespace(offsets=COMMITTED)
        self.newest_commit = COMMITTED
        self.interval = SimpleNamespace(is_long=is_long, due_change=self._due_change)
        self.seen: list[int] = []
        self.changes: list[Change] = []
        self._due = due

    def _due_change(self, uncommitted_events: int) -> Change | None:
        self.seen.append(uncommitted_events)
        return self._due

    def change_commits(self, change: Change) -> None:
        """Note the change, after which no other one is due."""
        self.changes.append(change)
        self._due = None

    def wake(self) -> None:
        """Note that it has to start."""
        self.phase = Phase.STARTING


def waiting(name: str, topic: str = "events") -> Query:
    """Return a query that waits for events."""
    query = Query(name)
    query.phase = Phase.WAITING
    query.spec = replace(FOLD, endpoints=replace(FOLD.endpoints, source_topic=topic))
    return query


class Topic:
    """The end of each partition, and of the records in it."""

    end = 5
    record_end = 5
    requests = 0
    is_known = True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> MovedClock:
    clock = MovedClock()
    monkeypatch.setattr(interval_changes, "time", clock)
    monkeypatch.setattr(lag, "time", clock)
    return clock


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    topic = Topic()

    def ends(_consumer: object, topics: dict[str, int]) -> dict[str, tuple[int, ...]]:
        topic.requests += 1
        found = {name: (topic.end,) * number for name, number in topics.items()}
        return found if topic.is_known else {}

    monkeypatch.setattr(lag, "end_offsets_of_topics", ends)
    monkeypatch.setattr(
        RecordEnds,
        "unread",
        lambda _self, _topic, ends, _read: Offsets(dict.fromkeys(ends, topic.record_end)),
    )
    return topic


def poll(changes: IntervalChanges, clock: MovedClock, *queries: Query) -> list[int]:
    """Poll a second later; return how often each query has changed."""
    clock.now_s += 1
    found: Any = queries
    changes.poll(found)
    return [len(query.changes) for query in queries]


def woken(changes: IntervalChanges, clock: MovedClock, *queries: Query) -> list[str]:
    """Return the names of those that have to start a moment later."""
    clock.now_s += WAKE_INTERVAL_S
    found: Any = [query for query in queries if query.phase is Phase.WAITING]
    has_woken = changes.wake(found)
    names = [query.name for query in found if query.phase is not Phase.WAITING]
    assert has_woken == bool(names)
    return names


@pytest.fixture
def changes(clock: MovedClock, topic: Topic) -> IntervalChanges:
    del clock, topic
    return IntervalChanges(NO_CONSUMER, SourceEnds(NO_CONSUMER))


@pytest.mark.parametrize("change", [Change.RARELY, Change.WAIT])
def test_one_query_changes_at_a_time(changes: IntervalChanges, clock: MovedClock, change: Change) -> None:
    first, second = Query("first", change), Query("second", change)
    assert poll(changes, clock, first, second) == [1, 0]
    assert poll(changes, clock, first, second) == [1, 1]


@pytest.mark.parametrize("phase", [Phase.CATCHING_UP, Phase.STARTING, Phase.REAL_TIME])
def test_no_query_becomes_rare_while_another_starts_or_catches_up(
    changes: IntervalChanges, clock: MovedClock, phase: Phase
) -> None:
    few, other = Query("few", Change.RARELY), Query("other")
    other.phase, other.running_for_s = phase, 0.0
    assert poll(changes, clock, few, other) == [0, 0]
    other.phase = Phase.FAILED
    assert poll(changes, clock, few, other) == [1, 0]


def test_queries_with_events_return_soon_one_after_the_other_also_while_another_catches_up(
    changes: IntervalChanges, clock: MovedClock
) -> None:
    first, second = (Query(name, Change.AS_SET, is_long=True) for name in ("first", "second"))
    other, few = Query("other"), Query("few", Change.RARELY)
    other.phase = Phase.CATCHING_UP
    assert poll(changes, clock, first, second, other, few) == [1, 0, 0, 0]
    assert poll(changes, clock, first, second, other, few) == [1, 0, 0, 0]
    clock.now_s += RETURN_GAP_S
    assert poll(changes, clock, first, second, other, few) == [1, 1, 0, 0]


def test_query_that_does_not_fold_or_has_no_finished_batch_does_not_change(
    changes: IntervalChanges, clock: MovedClock
) -> None:
    failed, young, idle = (Query(name, Change.WAIT) for name in ("failed", "young", "waits"))
    failed.phase, idle.phase = Phase.FAILED, Phase.WAITING
    young.batches.committed = Offsets()
    assert poll(changes, clock, failed, young, idle) == [0, 0, 0]

    # Dead letters may commit rarely from the start, and then have many events.
    young.interval.is_long = True
    assert poll(changes, clock, failed, young, idle) == [0, 1, 0]


def test_events_after_the_newest_commit_are_uncommitted_but_markers_of_transactions_are_not(
    changes: IntervalChanges, clock: MovedClock, topic: Topic
) -> None:
    query = Query("fold")
    poll(changes, clock, query)
    topic.end = 6
    for _ in range(7):
        poll(changes, clock, query)
    # Two partitions; their records are read once the ends have not changed for some seconds.
    assert query.seen == [0, 2, 2, 2, 2, 2, 0, 0]


def test_query_that_waits_starts_with_the_first_event_but_not_with_a_marker(
    changes: IntervalChanges, clock: MovedClock, topic: Topic
) -> None:
    query = waiting("fold")
    assert woken(changes, clock, query) == []
    topic.end = 6
    assert woken(changes, clock, query) == []
    topic.end = topic.record_end = 7
    assert woken(changes, clock, query) == ["fold"]


def test_query_that_waits_starts_when_its_topic_ends_earlier_or_is_gone_for_long(
    changes: IntervalChanges, clock: MovedClock, topic: Topic
) -> None:
    query = waiting("fold")
    topic.is_known = False
    assert woken(changes, clock, query) == [], "its partitions have no leader for a moment"
    clock.now_s += WITHOUT_LEADER_S
    assert woken(changes, clock, query) == ["fold"]

    again = waiting("fold")
    topic.is_known, topic.end = True, 4
    assert woken(changes, clock, again) == ["fold"]


def test_folds_that_wait_start_before_dead_letters_do_and_these_one_after_the_other(
    changes: IntervalChanges, clock: MovedClock, topic: Topic
) -> None:
    letters = [waiting("a.dead-letter", "a"), waiting("b.dead-letter", "b")]
    for one in letters:
        one.spec = replace(one.spec, waits_for_others=True)
    queries = (*letters, waiting("a/v1", "a"), waiting("b/v1", "b"))
    topic.end = topic.record_end = 6
    assert woken(changes, clock, *queries) == ["a/v1", "b/v1"]
    assert woken(changes, clock, *queries) == []
    clock.now_s += RETURN_GAP_S
    assert woken(changes, clock, *queries) == ["a.dead-letter"]
    clock.now_s += RETURN_GAP_S
    assert woken(changes, clock, *queries) == ["b.dead-letter"]


def test_waiting_costs_a_request_for_all_topics_and_a_broker_that_does_not_answer_starts_nothing(
    changes: IntervalChanges, clock: MovedClock, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = [waiting(name, name) for name in ("a", "b", "c")]
    woken(changes, clock, *queries)
    before = topic.requests
    for _ in range(5):
        assert woken(changes, clock, *queries) == []
    assert topic.requests == before + 5

    def no_broker(*_: object) -> None:
        raise KafkaUnavailableError("no broker")

    monkeypatch.setattr(lag, "end_offsets_of_topics", no_broker)
    assert woken(changes, clock, *queries) == []


def test_the_ends_of_all_sources_are_read_with_one_request_a_second(clock: MovedClock, topic: Topic) -> None:
    ends = SourceEnds(NO_CONSUMER)
    for _ in range(3):
        for name in ("a", "b", "c"):
            assert ends.of(name, 2) == {0: topic.end, 1: topic.end}
    assert topic.requests == 3, "one for each new topic"

    for _ in range(5):
        clock.now_s += lag.INTERVAL_S
        for name in ("a", "b", "c"):
            ends.of(name, 2)
    assert topic.requests == 3 + 5

    topic.end += 50
    clock.now_s += lag.INTERVAL_S
    ends.of("a", 2)
    assert ends.events_per_s("a") == pytest.approx(100 / (6 * lag.INTERVAL_S))
    assert (ends.events_per_s("unknown"), ends.unchanged_s("a")) == (None, 0.0)
