"""A query without new events waits for some, one with few commits rarely, and every other one commits at the set interval."""

from dataclasses import replace

import pytest

from spark_jobs.streaming.commits import commit_interval
from spark_jobs.streaming.commits.commit_interval import (
    FIRST_HOLD,
    LONGEST_HOLD,
    MOST_REPEATED,
    RETURN_AFTER,
    Change,
    CommitInterval,
)
from tests.support.query_specs import TRIGGERS, spec
from tests.support.waiting import MovedClock

SET_S, IDLE_S = 60, 600
HOLD_S = FIRST_HOLD * SET_S
SOON_S = RETURN_AFTER * SET_S
LARGE = replace(
    TRIGGERS, catch_up_threshold_events=100_000, real_time_interval_s=SET_S, idle_interval_s=IDLE_S
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> MovedClock:
    clock = MovedClock()
    monkeypatch.setattr(commit_interval, "time", clock)
    return clock


def interval(idle_events: int | None) -> CommitInterval:
    return CommitInterval(replace(spec(), triggers=LARGE, idle_events=idle_events))


def change_after(query: CommitInterval, clock: MovedClock, seconds: float, uncommitted: int) -> Change | None:
    """Return the change that is due after these seconds, all with this number of events; none is due before."""
    for _ in range(int(seconds)):
        assert query.due_change(uncommitted) is None
        clock.now_s += 1
    return query.due_change(uncommitted)


@pytest.mark.parametrize("idle_events", [0, MOST_REPEATED])
def test_query_without_events_waits_for_some_after_some_intervals(
    clock: MovedClock, idle_events: int
) -> None:
    query = interval(idle_events)
    assert change_after(query, clock, HOLD_S, uncommitted=0) is Change.WAIT

    query.change(Change.WAIT)
    assert (query.may_wait, query.seconds) == (True, SET_S)


def test_one_event_starts_the_time_of_a_fold_again(clock: MovedClock) -> None:
    fold = interval(0)
    clock.now_s += HOLD_S - 1
    assert fold.due_change(1) is None
    assert change_after(fold, clock, HOLD_S, uncommitted=0) is Change.WAIT


def test_time_in_which_a_query_was_not_observed_does_not_count(clock: MovedClock) -> None:
    fold = interval(0)
    assert fold.due_change(0) is None
    clock.now_s += 10 * HOLD_S
    assert change_after(fold, clock, HOLD_S, uncommitted=0) is Change.WAIT


def test_fold_that_has_waited_runs_at_the_set_interval_whatever_arrives(clock: MovedClock) -> None:
    fold = interval(0)
    fold.change(Change.WAIT)
    fold.wake()
    fold.begin(1, events_per_s=0.0)
    assert (fold.may_wait, fold.seconds) == (False, SET_S)
    for uncommitted in (0, 1, MOST_REPEATED + 1) * 10:
        clock.now_s += 1
        assert fold.due_change(uncommitted) is None
        assert fold.due_change(uncommitted) is None


def test_fold_that_soon_had_events_again_stays_longer_before_it_waits(clock: MovedClock) -> None:
    fold = interval(0)
    holds = []
    for _ in range(6):
        began_s = clock.now_s
        while fold.due_change(0) is None:
            clock.now_s += 1
        holds.append((clock.now_s - began_s) / SET_S)
        fold.change(Change.WAIT)
        clock.now_s += 1
        fold.wake()
    assert holds == [FIRST_HOLD, 10, 20, 40, LONGEST_HOLD, LONGEST_HOLD]

    fold.change(Change.WAIT)
    clock.now_s += LONGEST_HOLD * SET_S + 1
    fold.wake()
    assert change_after(fold, clock, HOLD_S, uncommitted=0) is Change.WAIT, "it was idle for long"


def test_dead_letters_with_few_events_commit_rarely_from_the_start(clock: MovedClock) -> None:
    few, many, unknown, behind = (interval(MOST_REPEATED) for _ in range(4))
    few.begin(0, events_per_s=10.0)
    many.begin(0, events_per_s=10.1)
    unknown.begin(0, events_per_s=None)
    behind.begin(MOST_REPEATED, events_per_s=0.0)
    assert [query.seconds for query in (few, many, unknown, behind)] == [IDLE_S, SET_S, SET_S, SET_S]

    clock.now_s += IDLE_S
    assert few.due_change(6_000) is None
    # At the set interval, ten events a second are 600.
    assert change_after(many, clock, HOLD_S, uncommitted=600) is None
    assert many.due_change(0) is Change.RARELY, "once nothing waits for a commit"
    assert change_after(unknown, clock, HOLD_S, uncommitted=601) is None
    assert unknown.due_change(0) is None


@pytest.mark.usefixtures("clock")
def test_dead_letters_that_have_waited_commit_soon_to_wait_again() -> None:
    query = interval(MOST_REPEATED)
    query.change(Change.WAIT)
    query.wake()
    query.begin(1, events_per_s=0.0)
    assert query.seconds == SET_S


def test_dead_letters_that_commit_rarely_wait_once_their_source_is_quiet(clock: MovedClock) -> None:
    query = interval(MOST_REPEATED)
    query.change(Change.RARELY)
    assert query.seconds == IDLE_S
    assert change_after(query, clock, HOLD_S, uncommitted=1) is None
    assert change_after(query, clock, HOLD_S, uncommitted=0) is Change.WAIT


@pytest.mark.usefixtures("clock")
def test_dead_letters_return_at_once_before_they_would_repeat_too_many_events() -> None:
    query = interval(MOST_REPEATED)
    query.change(Change.RARELY)
    assert query.due_change(MOST_REPEATED) is None
    assert query.due_change(MOST_REPEATED + 1) is Change.AS_SET

    query.change(Change.AS_SET)
    assert query.seconds == SET_S


@pytest.mark.usefixtures("clock")
def test_query_commits_at_the_set_interval_after_a_failure() -> None:
    query = interval(MOST_REPEATED)
    query.change(Change.RARELY)
    query.begin(0, events_per_s=1_000.0)
    assert query.seconds == IDLE_S, "the start that the change leads to"
    query.reset()
    assert query.seconds == SET_S


def test_nothing_changes_where_a_restart_would_delay_outputs_or_the_long_interval_is_no_longer(
    clock: MovedClock,
) -> None:
    route = interval(None)
    triggers = replace(LARGE, idle_interval_s=SET_S)
    fold = CommitInterval(replace(spec(), triggers=triggers, idle_events=0))
    assert not route.may_wait
    assert not fold.may_wait
    clock.now_s += 10 * HOLD_S
    for _ in range(2):
        assert (route.due_change(0), fold.due_change(0)) == (None, None)
        clock.now_s += 1


def test_small_threshold_for_catching_up_limits_what_dead_letters_leave_uncommitted(
    clock: MovedClock,
) -> None:
    triggers = replace(LARGE, catch_up_threshold_events=1_000)
    query = CommitInterval(replace(spec(), triggers=triggers, idle_events=MOST_REPEATED))
    query.begin(0, events_per_s=0.5)
    assert query.seconds == IDLE_S
    assert change_after(query, clock, SOON_S, uncommitted=1_001) is Change.AS_SET
