"""A driver passes its folds to a new one, whichever process is killed meanwhile; there are never two writers."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from include.stream import query_transfer
from include.stream.driver_configuration import Handover
from include.stream.driver_launch import ended_report
from include.stream.query_transfer import QueryTransfer
from stack.launchers import driver_handover
from tests.support.faults.dummy_driver import FAILS_WHEN_IT_WRITES, PASSES_NOTHING
from tests.support.faults.supervised_drivers import TIMEOUT_S, SupervisedDrivers, supervised_drivers
from tests.support.waiting import wait_until


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[SupervisedDrivers]:
    """A stack whose driver writes."""
    with supervised_drivers(tmp_path) as found:
        yield found


def test_a_new_driver_that_is_killed_before_it_takes_a_fold_is_given_up(
    stack: SupervisedDrivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = query_transfer.begin

    def kill_and_begin(home: Path, transfer: QueryTransfer) -> None:
        psutil.Process(transfer.to_pid).kill()
        begin(home, transfer)
        wait_until(lambda: "old ends" in stack.writes, "the fold is passed", TIMEOUT_S)

    monkeypatch.setattr(query_transfer, "begin", kill_and_begin)
    old = stack.driver

    assert stack.wait_for(stack.change("new"), Handover.FAILED).error == "killed by SIGKILL"
    stack.wait_for_writes("old begins", "old ends", "old begins")
    assert stack.driver == old
    stack.require_no_failure()


def test_the_old_driver_goes_on_if_the_new_one_fails_with_the_first_fold(stack: SupervisedDrivers) -> None:
    old = stack.driver

    report = stack.wait_for(stack.change(FAILS_WHEN_IT_WRITES), Handover.FAILED)

    assert report.error.startswith("ValueError: a wrong ")
    stack.step_until(lambda: stack.writes[-1] == "old begins" and len(stack.writes) > 2)
    stack.require_no_failure()
    assert old.is_running() == (stack.driver == old)


def test_a_new_driver_that_is_killed_when_it_has_the_folds_does_not_keep_the_old_one_away(
    stack: SupervisedDrivers,
) -> None:
    requested = stack.change("new")
    stack.step_until(lambda: query_transfer.read(stack.home) is not None)
    wait_until(lambda: "new begins" in stack.writes, "the new driver has the fold", TIMEOUT_S, poll_s=0.01)
    assert stack.candidate is not None

    stack.candidate.kill()

    assert stack.wait_for(requested, Handover.FAILED).error == "killed by SIGKILL"
    stack.wait_for_writes("old begins", "old ends", "new begins", "old begins")


def test_an_old_driver_that_is_killed_while_it_passes_its_folds_has_been_replaced(
    stack: SupervisedDrivers,
) -> None:
    requested = stack.change("new")
    stack.step_until(lambda: query_transfer.read(stack.home) is not None)
    wait_until(lambda: "new begins" in stack.writes, "the new driver has the fold", TIMEOUT_S, poll_s=0.01)

    stack.driver.kill()

    assert stack.wait_for(requested, Handover.DONE).is_new
    assert stack.writes == ["old begins", "old ends", "new begins"]
    assert ended_report(stack.home, stack.launch_id) is None
    assert query_transfer.read(stack.home) is None


def test_a_driver_that_does_not_pass_its_folds_in_time_is_stopped(
    stack: SupervisedDrivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.wait_for(stack.change(PASSES_NOTHING), Handover.DONE)
    stack.step_until(lambda: f"{PASSES_NOTHING} begins" in stack.writes)
    monkeypatch.setattr(driver_handover, "TRANSFER_TIMEOUT_S", 0.5)

    stack.wait_for(stack.change("new"), Handover.DONE)

    stack.step_until(lambda: stack.writes[-2:] == [f"{PASSES_NOTHING} ends", "new begins"])
    stack.require_no_failure()


def test_on_a_full_disk_the_driver_is_stopped_as_before(
    stack: SupervisedDrivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_args: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(query_transfer, "begin", full_disk)

    stack.wait_for(stack.change("new"), Handover.DONE)

    stack.wait_for_writes("old begins", "old ends", "new begins")


def test_the_next_supervisor_forgets_what_one_that_was_killed_had_passed(stack: SupervisedDrivers) -> None:
    requested = stack.change("new")
    stack.step_until(lambda: query_transfer.read(stack.home) is not None)
    # As the kernel does when the stream supervisor is killed.
    for process in (stack.supervisor._driver, stack.supervisor._change.candidate):
        assert process is not None
        process.kill()

    stack.replace_supervisor()

    assert query_transfer.read(stack.home) is None
    stack.wait_for(requested, Handover.DONE)
    stack.step_until(lambda: stack.writes[-1] == "new begins")
