"""A fold has caught up once its changelog contains what its source contained at its start. Fakes replace the topics."""

from dataclasses import replace

import pytest

from include.errors import KafkaUnavailableError
from include.kafka.record_ends import RecordEnds
from include.position import Offsets
from spark_jobs.streaming import lag
from spark_jobs.streaming.lag import BACKLOG_PATIENCE_S, LagWatch, SourceEnds
from tests.support.query_specs import NO_CONSUMER, spec
from tests.support.waiting import MovedClock


class Topics(SourceEnds):
    """The ends of the source, and what the changelog contains; its last record is none that is folded."""

    def __init__(self) -> None:
        super().__init__(NO_CONSUMER)
        self.ends = Offsets({0: 10, 1: 11})
        self.written = Offsets({0: 2})
        self.error: Exception | None = None

    def of(self, _topic: str, _partitions: int) -> Offsets:
        """Return the ends."""
        return self.ends

    def read(self) -> Offsets:
        """Return what is written."""
        if self.error is not None:
            raise self.error
        return self.written


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> MovedClock:
    clock = MovedClock()
    monkeypatch.setattr(lag, "time", clock)
    return clock


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> Topics:
    monkeypatch.setattr(RecordEnds, "unread", lambda _self, _topic, ends, _read: ends)
    return Topics()


def watch(topics: Topics, *, tells: bool = True) -> LagWatch:
    query = replace(spec(), written=topics.read if tells else None)
    return LagWatch(NO_CONSUMER, topics, query, lambda: Offsets({1: 3}))


def test_current_when_the_backlog_of_the_start_is_in_the_changelog(topics: Topics, clock: MovedClock) -> None:
    found = watch(topics)
    found.begin()
    found.measure()
    assert found.current_for_s() < 0

    topics.ends = Offsets({0: 90, 1: 90})
    topics.written = Offsets({0: 10, 1: 10})
    clock.now_s += 2
    found.measure()
    assert found.current_for_s() < 0

    topics.written = Offsets({0: 10, 1: 11})
    clock.now_s += 2
    found.measure()
    clock.now_s += 3
    assert found.current_for_s() == 3

    found.begin()
    assert found.current_for_s() < 0, "another start has a backlog of its own"


@pytest.mark.usefixtures("clock")
def test_what_is_committed_is_no_backlog(topics: Topics) -> None:
    topics.ends = Offsets({0: 2, 1: 3})
    found = watch(topics)
    found.begin()
    found.measure()

    assert found.current_for_s() == 0


def test_a_backlog_that_is_not_folded_delays_no_query_for_ever(topics: Topics, clock: MovedClock) -> None:
    topics.error = KafkaUnavailableError("no broker")
    found = watch(topics)
    found.begin()
    found.measure()
    clock.now_s += BACKLOG_PATIENCE_S + 1

    assert found.current_for_s() == 1


def test_an_output_that_does_not_tell_counts_from_the_start(topics: Topics, clock: MovedClock) -> None:
    found = watch(topics, tells=False)
    found.begin()
    clock.now_s += 5

    assert found.current_for_s() == 5
