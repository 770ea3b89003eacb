"""The present driver passes one fold after the other, each when its next run repeats little, and takes all back when the transfer ends."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from include.files import FileLock, file_lock, is_locked
from include.position import Offsets
from include.stream import query_transfer
from include.stream.query_reports import Phase
from include.stream.query_transfer import QueryTransfer
from spark_jobs.streaming import fold_transfer
from spark_jobs.streaming.fold_transfer import FEW_EVENTS, FoldGiver, FoldTaker
from spark_jobs.streaming.supervised_query import QueryFailedError, SupervisedQuery
from tests.support.query_specs import NO_CONSUMER, NO_SPARK, spec

# Giver and taker take the parent for their JVM.
OWN, OTHER = os.getppid(), 1
FROM_HERE, TO_HERE = QueryTransfer(OWN, OTHER), QueryTransfer(OTHER, OWN)


class Fold(SupervisedQuery):
    """A fold that runs here: it holds its lock. A test sets how far it is behind its commit."""

    def __init__(self, home: Path, name: str) -> None:
        self.lock = home / f"{name}.lock"
        super().__init__(
            NO_SPARK, replace(spec(name), lock=self.lock, guard=partial(file_lock, self.lock)), NO_CONSUMER
        )
        self._enter_guard()
        self.behind = 0
        self.taken = FileLock(self.lock)

    def events_behind(self) -> int:
        """Return what the test has set."""
        return self.behind

    def take(self) -> None:
        """Take the lock, as the new driver does."""
        assert self.taken.try_acquire()

    @property
    def is_passed(self) -> bool:
        """Whether the lock is free, or another driver has it."""
        return self._guard is None


@pytest.fixture
def folds(tmp_path: Path) -> list[Fold]:
    return [Fold(tmp_path, name) for name in ("a", "b")]


@pytest.fixture
def giver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FoldGiver:
    """The giver of a transfer that is under way, for which a fold has settled at once."""
    monkeypatch.setattr(fold_transfer, "SETTLING_S", 0.0)
    query_transfer.begin(tmp_path, FROM_HERE)
    found = FoldGiver(tmp_path)
    assert found.is_under_way()
    return found


def test_one_fold_is_passed_after_the_other(giver: FoldGiver, folds: list[Fold], tmp_path: Path) -> None:
    first, second = folds

    assert not giver.step(folds)
    assert first.is_passed
    assert not is_locked(first.lock)
    assert not giver.step(folds)
    assert not second.is_passed, "the new driver has not taken the first one"

    first.take()
    giver.step(folds)
    assert second.is_passed
    assert query_transfer.passed(tmp_path, FROM_HERE) == {"a", "b"}
    assert not giver.step(folds), "the second one has not been taken"
    second.take()
    assert giver.step(folds)


def test_the_next_fold_waits_until_the_one_before_has_settled(
    giver: FoldGiver, folds: list[Fold], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold_transfer, "SETTLING_S", 3600.0)
    giver.step(folds)
    folds[0].take()

    giver.step(folds)

    assert not folds[1].is_passed


def test_folds_that_wait_for_events_are_passed_at_once_and_before_those_that_run(
    giver: FoldGiver, folds: list[Fold], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold_transfer, "SETTLING_S", 3600.0)
    running, *waiting = Fold(tmp_path, "c"), *folds
    for fold in waiting:
        fold.phase = Phase.WAITING

    giver.step([running, *waiting])
    assert [fold.is_passed for fold in waiting] == [True, True]
    assert not running.is_passed
    assert query_transfer.passed(tmp_path, FROM_HERE) == {"a", "b"}

    waiting[0].take()
    giver.step([running, *waiting])
    assert not running.is_passed, "the new driver has not taken the second one"
    waiting[1].take()
    giver.step([running, *waiting])
    assert running.is_passed, "nothing has to settle"


@pytest.mark.parametrize("wait_s", [0.0, 3600.0])
def test_a_busy_fold_is_passed_a_moment_after_it_has_committed(
    giver: FoldGiver, folds: list[Fold], monkeypatch: pytest.MonkeyPatch, wait_s: float
) -> None:
    monkeypatch.setattr(fold_transfer, "AFTER_COMMIT_S", wait_s)
    busy, quiet = folds
    busy.behind = FEW_EVENTS + 1
    giver.step(folds)
    assert not busy.is_passed
    assert quiet.is_passed, "another one does not wait for it"
    quiet.take()
    giver.step(folds)
    assert not busy.is_passed

    busy.checkpoint.offsets = Offsets({0: 5})
    busy.behind = 0
    giver.step(folds)

    assert busy.is_passed == (wait_s == 0.0)


def test_a_fold_that_never_commits_is_passed_in_the_end(
    giver: FoldGiver, folds: list[Fold], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold_transfer, "PATIENCE_S", 0.0)
    folds[0].behind = FEW_EVENTS + 1

    giver.step(folds)

    assert folds[0].is_passed


def test_a_fold_that_the_new_driver_does_not_have_holds_nothing_up(
    giver: FoldGiver, folds: list[Fold], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold_transfer, "TAKE_TIMEOUT_S", 0.0)
    giver.step(folds)

    giver.step(folds)

    assert folds[1].is_passed


def test_other_queries_stay(giver: FoldGiver) -> None:
    route = SupervisedQuery(NO_SPARK, spec("route/a"), NO_CONSUMER)

    assert giver.step([route])
    assert giver.is_own(route)


def test_the_folds_come_back_when_the_transfer_ends(
    giver: FoldGiver, folds: list[Fold], tmp_path: Path
) -> None:
    giver.step(folds)
    assert not giver.is_own(folds[0])

    query_transfer.end(tmp_path)

    assert not giver.is_under_way()
    assert giver.is_own(folds[0])
    assert query_transfer.passed(tmp_path, FROM_HERE) == frozenset()


def test_a_fold_that_cannot_be_listed_stays(
    giver: FoldGiver, folds: list[Fold], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_args: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(query_transfer, "list_passed", full_disk)

    giver.step(folds)

    assert giver.is_own(folds[0])


def test_a_transfer_between_other_drivers_is_none(tmp_path: Path) -> None:
    query_transfer.begin(tmp_path, QueryTransfer(OTHER, OTHER))

    assert not FoldGiver(tmp_path).is_under_way()
    assert not FoldTaker(tmp_path).is_under_way()


def test_the_new_driver_takes_only_what_is_passed_to_it(tmp_path: Path, folds: list[Fold]) -> None:
    taker = FoldTaker(tmp_path)
    query_transfer.begin(tmp_path, TO_HERE)
    query_transfer.list_passed(tmp_path, QueryTransfer(OTHER, OTHER), ["b"])
    assert taker.is_under_way()
    assert not any(map(taker.is_own, folds))

    query_transfer.list_passed(tmp_path, TO_HERE, ["a"])

    assert taker.is_under_way()
    assert [fold.name for fold in folds if taker.is_own(fold)] == ["a"]


def test_the_new_driver_fails_with_an_essential_fold_that_it_cannot_start(
    tmp_path: Path, folds: list[Fold]
) -> None:
    query_transfer.begin(tmp_path, TO_HERE)
    query_transfer.list_passed(tmp_path, TO_HERE, ["a"])
    taker = FoldTaker(tmp_path)
    assert taker.is_under_way()
    for fold in folds:
        fold.phase, fold.last_error = Phase.FAILED, "a wrong fold"

    with pytest.raises(QueryFailedError, match=r"^query a: a wrong fold$"):
        taker.require_no_failure(folds)

    folds[0].is_essential = False
    taker.require_no_failure(folds)
