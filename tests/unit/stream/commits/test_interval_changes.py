"""Queries change their interval of commits one at a time, while no other query starts or catches up.

A fake replaces each running query, and a number of events replaces the topic.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from include.kafka.record_ends import RecordEnds
from include.position import Offsets
from include.stream.query_reports import BatchProgress, Phase
from spark_jobs.streaming import interval_changes, lag
from spark_jobs.streaming.interval_changes import RETURN_GAP_S, IntervalChanges
from spark_jobs.streaming.lag import SourceEnds
from spark_jobs.streaming.query_spec import QuerySpec
from tests.support.query_specs import NO_CONSUMER, TRIGGERS, spec
from tests.support.waiting import MovedClock

SET_S = TRIGGERS.real_time_interval_s
FOLD = replace(spec(), idle_events=0, triggers=replace(TRIGGERS, idle_interval_s=10 * SET_S))


@dataclass
class Batches:
    """The reports on a query's batches."""

    last: BatchProgress | None = field(default_factory=BatchProgress)


class Query:
    """Stands for a query that runs: `must` says that its interval has to change."""

    def __init__(self, name: str, *, must: bool, is_long: bool = False) -> None:
        self.name = name
        self.spec: QuerySpec = FOLD
        self.phase = Phase.REAL_TIME
        self.running_for_s = float(SET_S)
        self.batches = Batches()
        self.newest_commit = Offsets({0: 5, 1: 5})
        self.interval: Any = Interval(is_long=is_long, must=must)
        self.changes = 0

    def change_interval(self) -> None:
        """Count, and use the other interval."""
        self.changes += 1
        self.interval = Interval(is_long=not self.interval.is_long, must=False)


@dataclass
class Interval:
    """Stands for the decision of a query; `seen` are the numbers of uncommitted events."""

    is_long: bool
    must: bool
    seen: list[int] = field(default_factory=list)

    def must_change(self, uncommitted_events: int) -> bool:
        """Return the decision."""
        self.seen.append(uncommitted_events)
        return self.must


class Topic:
    """The end of each partition, and of the records in it."""

    end = 5
    record_end = 5
    requests = 0


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
        return {name: (topic.end,) * number for name, number in topics.items()}

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
    return [query.changes for query in queries]


@pytest.fixture
def changes(clock: MovedClock, topic: Topic) -> IntervalChanges:
    del clock, topic
    return IntervalChanges(NO_CONSUMER, SourceEnds(NO_CONSUMER))


def test_one_query_changes_at_a_time_and_the_next_once_it_has_committed(
    changes: IntervalChanges, clock: MovedClock
) -> None:
    first, second = Query("first", must=True), Query("second", must=True)
    assert poll(changes, clock, first, second) == [1, 0]

    first.running_for_s = 0.0
    assert poll(changes, clock, first, second) == [1, 0]
    first.running_for_s = float(SET_S)
    assert poll(changes, clock, first, second) == [1, 1]


@pytest.mark.parametrize("phase", [Phase.CATCHING_UP, Phase.STARTING])
def test_no_query_becomes_rare_while_another_starts_or_catches_up(
    changes: IntervalChanges, clock: MovedClock, phase: Phase
) -> None:
    idle, other = Query("idle", must=True), Query("other", must=False)
    other.phase = phase
    assert poll(changes, clock, idle, other) == [0, 0]
    other.phase = Phase.FAILED
    assert poll(changes, clock, idle, other) == [1, 0]


def test_queries_with_events_return_soon_one_after_the_other_also_while_another_catches_up(
    changes: IntervalChanges, clock: MovedClock
) -> None:
    first, second = (Query(name, must=True, is_long=True) for name in ("first", "second"))
    other, idle = Query("other", must=False), Query("idle", must=True)
    other.phase = Phase.CATCHING_UP
    assert poll(changes, clock, first, second, other, idle) == [1, 0, 0, 0]
    assert poll(changes, clock, first, second, other, idle) == [1, 0, 0, 0]
    clock.now_s += RETURN_GAP_S
    assert poll(changes, clock, first, second, other, idle) == [1, 1, 0, 0]


def test_query_in_batches_or_without_a_finished_batch_does_not_change(
    changes: IntervalChanges, clock: MovedClock
) -> None:
    batches, young = Query("batches", must=True), Query("young", must=True)
    batches.phase = Phase.BATCHES
    young.batches.last = None
    assert poll(changes, clock, batches, young) == [0, 0]

    # Dead letters may commit rarely from the start, and then have many events.
    young.interval = Interval(is_long=True, must=True)
    assert poll(changes, clock, batches, young) == [0, 1]


def test_events_after_the_newest_commit_are_uncommitted_but_markers_of_transactions_are_not(
    changes: IntervalChanges, clock: MovedClock, topic: Topic
) -> None:
    query = Query("fold", must=False)
    poll(changes, clock, query)
    topic.end = 6
    for _ in range(7):
        poll(changes, clock, query)
    # Two partitions; their records are read once the ends have not changed for some seconds.
    assert query.interval.seen == [0, 2, 2, 2, 2, 2, 0, 0]


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
