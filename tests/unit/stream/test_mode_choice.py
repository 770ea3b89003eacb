"""A query goes over to batches when it falls behind in real time, and comes back when it has kept up."""

from dataclasses import replace

import pytest

from include.stream.query_reports import Phase
from spark_jobs.streaming import mode_choice
from spark_jobs.streaming.mode_choice import BEHIND_S, RECOVERED_AFTER, ModeChoice
from tests.support.query_specs import TRIGGERS
from tests.support.waiting import MovedClock

FIRST_HOLD_S = TRIGGERS.min_batch_time_s
RECOVERED_AFTER_S = RECOVERED_AFTER * FIRST_HOLD_S
BEHIND = TRIGGERS.catch_up_threshold_events + 1
KEPT_UP = TRIGGERS.catch_up_threshold_events // 2


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> MovedClock:
    clock = MovedClock()
    monkeypatch.setattr(mode_choice, "time", clock)
    return clock


def fall_behind(mode: ModeChoice, clock: MovedClock) -> None:
    assert not mode.must_change(Phase.REAL_TIME, BEHIND)
    clock.now_s += BEHIND_S
    assert mode.must_change(Phase.REAL_TIME, BEHIND)


def test_query_that_stays_behind_goes_over_to_batches(clock: MovedClock) -> None:
    mode = ModeChoice(TRIGGERS)
    before = mode.next_phase
    fall_behind(mode, clock)
    assert (before, mode.next_phase) == (Phase.REAL_TIME, Phase.BATCHES)


def test_hiccup_changes_nothing(clock: MovedClock) -> None:
    mode = ModeChoice(TRIGGERS)
    for lag in (BEHIND, BEHIND - 1) * 10:
        assert not mode.must_change(Phase.REAL_TIME, lag)
        clock.now_s += BEHIND_S - 1
    assert mode.next_phase is Phase.REAL_TIME


def test_query_that_has_kept_up_for_a_while_comes_back(clock: MovedClock) -> None:
    mode = ModeChoice(TRIGGERS)
    fall_behind(mode, clock)
    clock.now_s += FIRST_HOLD_S - 1
    assert not mode.must_change(Phase.BATCHES, 0), "too soon"
    clock.now_s += 1
    assert not mode.must_change(Phase.BATCHES, KEPT_UP + 1), "does not keep up"
    assert mode.must_change(Phase.BATCHES, KEPT_UP)
    assert mode.next_phase is Phase.REAL_TIME


def held_s(mode: ModeChoice, clock: MovedClock) -> float:
    """Return for how long a query without a lag stays in batches."""
    began_s = clock.now_s
    while not mode.must_change(Phase.BATCHES, 0):
        clock.now_s += 1
    return clock.now_s - began_s


def test_query_that_falls_behind_again_soon_stays_longer_until_it_has_recovered(clock: MovedClock) -> None:
    mode = ModeChoice(TRIGGERS)
    held = []
    for _ in range(7):
        fall_behind(mode, clock)
        held.append(held_s(mode, clock))
    assert held == [60, 120, 240, 480, 960, 960, 960]

    clock.now_s += RECOVERED_AFTER_S
    fall_behind(mode, clock)
    assert held_s(mode, clock) == FIRST_HOLD_S


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.CATCHING_UP, Phase.FAILED, Phase.REFUSED])
def test_query_in_another_phase_does_not_change(clock: MovedClock, phase: Phase) -> None:
    mode = ModeChoice(TRIGGERS)
    for _ in range(3):
        assert not mode.must_change(phase, BEHIND)
        clock.now_s += BEHIND_S


def test_query_in_batches_only_stays_there(clock: MovedClock) -> None:
    mode = ModeChoice(replace(TRIGGERS, batches_only=True))
    clock.now_s += 100 * FIRST_HOLD_S
    assert mode.next_phase is Phase.BATCHES
    assert not mode.must_change(Phase.BATCHES, 0)
