"""The driver's queries follow the specifications, get task slots by rank, and start the dead letters last."""

import time
from dataclasses import replace

import pytest

from include.stream.query_reports import Phase
from include.stream.slot_planning import SlotRank
from spark_jobs.streaming import query_set
from spark_jobs.streaming.interval_changes import IntervalChanges
from spark_jobs.streaming.query_set import NO_SLOTS, SETTLING_S, QuerySet
from spark_jobs.streaming.query_spec import QuerySpec, StartRefusedError
from spark_jobs.streaming.supervised_query import QueryFailedError, SupervisedQuery
from tests.support.query_specs import NO_CONSUMER, NO_SPARK, Attempts, spec

LIVE = spec("balance/v1", rank=SlotRank.SERVING)
DEAD_LETTERS = spec("balance.dead-letter", waits=True, rank=SlotRank.SERVING)
CANDIDATE = spec("balance/v2", essential=False, rank=SlotRank.CANDIDATE)


class Driver:
    """A query set whose specifications a test changes."""

    def __init__(self, *specs: QuerySpec, task_slots: int = 100) -> None:
        self.specs = list(specs)
        self.queries = QuerySet(NO_SPARK, NO_CONSUMER, lambda: self.specs, task_slots)
        self.queries.reconcile()

    @property
    def by_name(self) -> dict[str, SupervisedQuery]:
        """The queries by name."""
        return {query.name: query for query in self.queries}

    @property
    def due(self) -> list[str]:
        """The names of the queries that are due."""
        return [query.name for query in self.queries.due()]


def test_query_lives_as_long_as_its_specification() -> None:
    driver = Driver(LIVE, CANDIDATE)
    live, candidate = driver.by_name["balance/v1"], driver.by_name["balance/v2"]

    driver.specs = [spec("balance/v1", essential=False)]
    driver.queries.reconcile()

    assert driver.by_name == {"balance/v1": live}
    assert not live.is_essential
    assert candidate.phase is Phase.STOPPED


def test_dead_letters_start_when_every_fold_has_caught_up_and_settled() -> None:
    driver = Driver(DEAD_LETTERS, LIVE)
    assert driver.due == ["balance/v1"]

    driver.by_name["balance/v1"].phase = Phase.CATCHING_UP
    assert driver.due == ["balance/v1"]
    driver.by_name["balance/v1"].phase = Phase.REAL_TIME
    assert driver.due == ["balance/v1", "balance.dead-letter"]

    # As after a start.
    driver.by_name["balance/v1"]._started_s = time.monotonic() - SETTLING_S + 1
    assert driver.due == ["balance/v1"], "the fold has not settled"
    driver.by_name["balance/v1"]._started_s -= 1
    assert driver.due == ["balance/v1", "balance.dead-letter"]

    driver.by_name["balance.dead-letter"].phase = Phase.REAL_TIME
    driver.by_name["balance/v1"].phase = Phase.CATCHING_UP
    assert driver.due == ["balance/v1", "balance.dead-letter"], "the query is not stopped"


def test_dead_letters_start_at_once_where_every_fold_waits_for_events() -> None:
    driver = Driver(DEAD_LETTERS, LIVE)
    driver.by_name["balance/v1"].phase = Phase.WAITING
    driver.by_name["balance/v1"]._started_s = time.monotonic()
    assert driver.due == ["balance/v1", "balance.dead-letter"]


@pytest.mark.parametrize("is_warm", [False, True])
def test_one_fold_of_a_driver_that_is_not_warm_starts_although_all_wait(
    monkeypatch: pytest.MonkeyPatch, *, is_warm: bool
) -> None:
    monkeypatch.setattr(IntervalChanges, "wake", lambda *_: False)
    monkeypatch.setattr(IntervalChanges, "poll", lambda *_: None)
    monkeypatch.setattr(query_set, "POLL_INTERVAL_S", 0.0)
    fold = replace(LIVE, idle_events=0)
    driver = Driver(fold, replace(fold, name="orders/v1"))
    driver.queries.is_warm = is_warm
    for query in driver.queries:
        query.phase = Phase.WAITING
    driver.queries.poll()

    expected = [Phase.WAITING if is_warm else Phase.STARTING, Phase.WAITING]
    assert [query.phase for query in driver.queries] == expected
    assert driver.queries.is_warm == is_warm


def test_dead_letters_do_not_wait_for_a_failing_candidate() -> None:
    driver = Driver(DEAD_LETTERS, CANDIDATE)
    driver.by_name["balance/v2"].phase = Phase.FAILED
    assert driver.due == ["balance/v2", "balance.dead-letter"]


def test_a_new_driver_cannot_start_if_an_essential_query_cannot_be_prepared() -> None:
    refused = Attempts(prepare_error=StartRefusedError("its fold has changed"))
    driver = Driver(spec("balance/v1", refused), spec("balance/v2", refused, essential=False))

    with pytest.raises(QueryFailedError, match=r"^query balance/v1: its fold has changed$"):
        driver.queries.require_startable()

    driver.specs = driver.specs[1:]
    driver.queries.reconcile()
    driver.queries.require_startable()


def test_query_without_slots_is_refused_until_slots_are_free() -> None:
    driver = Driver(CANDIDATE, LIVE, DEAD_LETTERS, task_slots=4)
    candidate = driver.by_name["balance/v2"]
    assert (candidate.phase, candidate.last_error) == (Phase.REFUSED, NO_SLOTS)
    assert "balance/v2" not in driver.due

    driver.specs = [CANDIDATE, DEAD_LETTERS]
    driver.queries.reconcile()
    assert "balance/v2" in driver.due


def test_queries_commit_at_different_moments_and_never_later_than_the_setting() -> None:
    intervals = {spec(f"copy-{number}/v1").commit_interval_ms(300) for number in range(10)}

    assert len(intervals) == 10
    assert all(270_000 <= interval <= 300_000 for interval in intervals)


def test_no_commit_interval_is_shorter_than_spark_allows() -> None:
    assert CANDIDATE.commit_interval_ms(1) == 1_000


def test_essential_queries_start_first_and_then_those_that_feed_others() -> None:
    route = replace(spec("route/a", essential=False), feeds_others=True)

    assert Driver(CANDIDATE, route, LIVE).due == ["balance/v1", "route/a", "balance/v2"]
