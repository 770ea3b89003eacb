"""A query commits rarely while its source has no new events, and at the set interval soon after one has arrived."""

from dataclasses import replace

import pytest

from include.stream.folded_offsets import COMMIT_S
from spark_jobs.streaming.commits import commit_interval
from spark_jobs.streaming.commits.commit_interval import (
    FIRST_HOLD,
    LONGEST_HOLD,
    MOST_REPEATED,
    RETURN_AFTER,
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


def must_change_after(query: CommitInterval, clock: MovedClock, seconds: float, uncommitted: int) -> bool:
    """Return whether the query must change after these seconds, all with this number of events; not before."""
    for _ in range(int(seconds) - 1):
        assert not query.must_change(uncommitted)
        clock.now_s += 1
    assert not query.must_change(uncommitted)
    clock.now_s += 1
    return query.must_change(uncommitted)


def test_fold_without_events_commits_rarely_after_some_intervals(clock: MovedClock) -> None:
    fold = interval(0)
    assert fold.seconds == SET_S
    assert must_change_after(fold, clock, HOLD_S, uncommitted=0)

    fold.change()
    assert fold.seconds == IDLE_S
    clock.now_s += 10 * IDLE_S
    assert not fold.must_change(0)


def test_one_event_starts_the_time_of_a_fold_again(clock: MovedClock) -> None:
    fold = interval(0)
    clock.now_s += HOLD_S - 1
    assert not fold.must_change(1)
    assert must_change_after(fold, clock, HOLD_S, uncommitted=0)


def test_time_in_which_a_query_was_not_observed_does_not_count(clock: MovedClock) -> None:
    fold = interval(0)
    assert not fold.must_change(0)
    clock.now_s += 10 * HOLD_S
    assert must_change_after(fold, clock, HOLD_S, uncommitted=0)


def test_fold_returns_to_the_set_interval_soon_after_an_event(clock: MovedClock) -> None:
    fold = interval(0)
    fold.change()
    clock.now_s += IDLE_S
    assert must_change_after(fold, clock, SOON_S, uncommitted=1)

    fold.change()
    assert fold.seconds == SET_S


def test_fold_with_a_long_set_interval_returns_before_it_is_taken_for_a_stalled_one(
    clock: MovedClock,
) -> None:
    triggers = replace(LARGE, real_time_interval_s=500, idle_interval_s=5_000)
    fold = CommitInterval(replace(spec(), triggers=triggers, idle_events=0))
    fold.change()
    assert must_change_after(fold, clock, COMMIT_S / 2, uncommitted=1)


def test_event_that_is_committed_in_time_changes_nothing(clock: MovedClock) -> None:
    fold = interval(0)
    fold.change()
    for uncommitted in (0, 5) * 10:
        assert not fold.must_change(uncommitted)
        clock.now_s += SOON_S - 1


@pytest.mark.parametrize("idle_events", [0, MOST_REPEATED])
@pytest.mark.usefixtures("clock")
def test_query_returns_at_once_before_it_would_repeat_too_many_events(idle_events: int) -> None:
    query = interval(idle_events)
    query.change()
    assert not query.must_change(MOST_REPEATED)
    assert query.must_change(MOST_REPEATED + 1)


def test_fold_that_soon_had_events_again_stays_longer_at_the_set_interval(clock: MovedClock) -> None:
    fold = interval(0)
    holds = []
    for _ in range(6):
        began_s = clock.now_s
        while not fold.must_change(0):
            clock.now_s += 1
        holds.append((clock.now_s - began_s) / SET_S)
        fold.change()
        clock.now_s += 1
        fold.change()
    assert holds == [FIRST_HOLD, 10, 20, 40, LONGEST_HOLD, LONGEST_HOLD]

    fold.change()
    clock.now_s += LONGEST_HOLD * SET_S + 1
    fold.change()
    assert must_change_after(fold, clock, HOLD_S, uncommitted=0), "it was idle for long"


def test_dead_letters_with_few_events_commit_rarely_from_the_start(clock: MovedClock) -> None:
    few, many, unknown, behind = (interval(MOST_REPEATED) for _ in range(4))
    few.begin(0, events_per_s=10.0)
    many.begin(0, events_per_s=10.1)
    unknown.begin(0, events_per_s=None)
    behind.begin(MOST_REPEATED, events_per_s=0.0)
    assert [query.seconds for query in (few, many, unknown, behind)] == [IDLE_S, SET_S, SET_S, SET_S]

    clock.now_s += IDLE_S
    assert not few.must_change(6_000)
    # At the set interval, ten events a second are 600.
    assert not must_change_after(many, clock, HOLD_S, uncommitted=600)
    assert many.must_change(0), "once nothing waits for a commit"
    assert not must_change_after(unknown, clock, HOLD_S, uncommitted=601)
    assert not unknown.must_change(0)


@pytest.mark.usefixtures("clock")
def test_fold_starts_at_the_set_interval_also_after_a_failure() -> None:
    fold = interval(0)
    fold.begin(0, events_per_s=0.0)
    assert fold.seconds == SET_S

    fold.change()
    fold.begin(0, events_per_s=0.0)
    assert fold.seconds == IDLE_S, "the start that the change leads to"
    fold.reset()
    assert fold.seconds == SET_S


def test_interval_never_changes_where_a_restart_would_delay_outputs_or_the_setting_is_no_longer(
    clock: MovedClock,
) -> None:
    route = interval(None)
    triggers = replace(LARGE, idle_interval_s=SET_S)
    fold = CommitInterval(replace(spec(), triggers=triggers, idle_events=0))
    clock.now_s += 10 * HOLD_S
    assert not route.must_change(0)
    assert not fold.must_change(0)


def test_small_threshold_for_catching_up_limits_what_dead_letters_leave_uncommitted(
    clock: MovedClock,
) -> None:
    triggers = replace(LARGE, catch_up_threshold_events=1_000)
    query = CommitInterval(replace(spec(), triggers=triggers, idle_events=MOST_REPEATED))
    query.begin(0, events_per_s=0.5)
    assert query.seconds == IDLE_S
    assert must_change_after(query, clock, SOON_S, uncommitted=1_001)
