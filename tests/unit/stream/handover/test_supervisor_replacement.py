"""A stream supervisor with new code gets its driver ready beside the present one, which stays if that fails; there are never two writers."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from include.stream import query_transfer
from include.stream.driver_configuration import Handover
from include.stream.driver_launch import ended_report, read_report, withdraw
from stack.launchers import stream_supervisor, supervisor_replacement
from stack.launchers.supervisor_replacement import (
    ReplacementError,
    successor,
)
from tests.support.faults.dummy_driver import FAILS, IS_NEVER_READY, PASSES_NOTHING
from tests.support.faults.supervised_drivers import (
    SupervisedDrivers,
    supervised_drivers,
)
from tests.support.faults.two_supervisors import Supervisors


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[SupervisedDrivers]:
    """A stack whose driver writes."""
    with supervised_drivers(tmp_path) as found:
        yield found


@pytest.fixture
def supervisors(stack: SupervisedDrivers) -> Iterator[Supervisors]:
    found = Supervisors(stack)
    yield found
    found.lock.release()


def assert_goes_on(supervisors: Supervisors) -> None:
    """Assert that the present stream supervisor and its driver go on, and follow requests."""
    stack = supervisors.stack
    for _ in range(30):
        stack.supervisor.step()
    assert not stack.supervisor.is_over()
    assert query_transfer.read(stack.home) is None
    assert stack.driver.is_running()
    report = read_report(stack.home)
    assert report is not None
    assert (report.launch_id, report.has_ended) == (stack.launch_id, False)


def test_the_present_driver_passes_its_folds_to_the_new_one(supervisors: Supervisors) -> None:
    stack = supervisors.stack
    supervisors.start("new")
    supervisors.wait_until_ready()
    assert stack.writes == ["old begins"]

    supervisors.stop_present()
    supervisors.take_over()

    stack.wait_for_writes("old begins", "old ends", "new begins")
    assert stack.driver.pid == supervisors.driver.pid
    # Airflow's task follows the same launch.
    stack.require_no_failure()
    assert successor(stack.home) is None


def test_one_that_is_stopped_and_not_replaced_stops_both_drivers(supervisors: Supervisors) -> None:
    supervisors.start("new")
    supervisors.wait_until_ready()

    supervisors.stack.supervisor.request_stop(15, None)
    assert supervisors.stack.supervisor.is_over()
    supervisors.new.end()
    supervisors.stack.supervisor.run()

    assert supervisors.stack.writes == ["old begins", "old ends"]
    supervisors.lock.release()
    supervisors.stack.replace_supervisor()


@pytest.mark.parametrize(
    ("behaviour", "reason"), [(FAILS, "ValueError: a wrong setting"), (IS_NEVER_READY, "not ready after 1 s")]
)
def test_a_new_driver_that_fails_leaves_the_present_one(
    supervisors: Supervisors, monkeypatch: pytest.MonkeyPatch, behaviour: str, reason: str
) -> None:
    if behaviour == IS_NEVER_READY:
        monkeypatch.setattr(supervisor_replacement, "READY_TIMEOUT_S", 1.0)
    supervisors.start(behaviour)

    with pytest.raises(ReplacementError, match=reason):
        supervisors.new.wait()

    assert supervisors.new.driver is None
    assert supervisors.stack.writes == ["old begins"]
    assert_goes_on(supervisors)


def beside_a_driver_that_passes_nothing(stack: SupervisedDrivers) -> Supervisors:
    """Return a new stream supervisor whose driver is ready."""
    stack.wait_for(stack.change(PASSES_NOTHING), Handover.DONE)
    stack.wait_for_writes("old begins", "old ends", f"{PASSES_NOTHING} begins")
    supervisors = Supervisors(stack)
    supervisors.start("new")
    supervisors.wait_until_ready()
    return supervisors


def test_a_new_driver_that_is_killed_while_it_gets_folds_leaves_the_present_one(
    stack: SupervisedDrivers,
) -> None:
    supervisors = beside_a_driver_that_passes_nothing(stack)
    supervisors.stop_present()
    supervisors.step_until(lambda: query_transfer.read(stack.home) is not None)

    supervisors.driver.kill()

    with pytest.raises(ReplacementError, match="killed by SIGKILL"):
        supervisors.step_until(lambda: False)
    supervisors.new.close()
    assert_goes_on(supervisors)
    supervisors.lock.release()


def test_a_driver_that_passes_nothing_in_time_is_stopped(
    stack: SupervisedDrivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor_replacement, "TRANSFER_TIMEOUT_S", 0.5)
    supervisors = beside_a_driver_that_passes_nothing(stack)

    supervisors.stop_present()
    supervisors.take_over()

    stack.step_until(lambda: stack.writes[-2:] == [f"{PASSES_NOTHING} ends", "new begins"])
    stack.require_no_failure()


def test_a_present_driver_that_is_killed_before_the_new_one_is_ready_is_launched_again(
    supervisors: Supervisors,
) -> None:
    supervisors.start(IS_NEVER_READY)
    supervisors.step_until(lambda: supervisors.new.driver is not None)
    # Its child waits for the present driver's lock.
    supervisors.step_until(lambda: psutil.Process(supervisors.driver.pid).children() != [])

    supervisors.stack.driver.kill()

    with pytest.raises(ReplacementError, match="has ended before the new one was ready"):
        supervisors.step_until(lambda: False)
    supervisors.new.close()
    supervisors.stack.wait_for_writes("old begins", "old begins")
    assert_goes_on(supervisors)


def test_a_present_driver_that_is_killed_when_the_new_one_is_ready_is_replaced(
    supervisors: Supervisors,
) -> None:
    supervisors.start("new")
    supervisors.wait_until_ready()
    assert supervisors.new.driver is not None

    supervisors.stack.driver.kill()
    # Without a request of the holder.
    supervisors.take_over()

    supervisors.stack.wait_for_writes("old begins", "new begins")
    supervisors.stack.require_no_failure()


@pytest.mark.parametrize("behaviour", ["new", IS_NEVER_READY])
def test_the_new_supervisor_goes_on_after_the_present_one_was_killed(
    supervisors: Supervisors, behaviour: str
) -> None:
    supervisors.start(behaviour)
    supervisors.step_until(lambda: supervisors.new.driver is not None)
    new = supervisors.driver.pid

    supervisors.take_over(killed=True)

    assert supervisors.stack.driver.pid == new
    for _ in range(30):
        supervisors.stack.supervisor.step()
    assert supervisors.stack.driver.is_running()
    if behaviour == "new":
        supervisors.stack.wait_for_writes("old begins", "new begins")


def test_the_standby_ends_for_the_new_driver(
    supervisors: Supervisors, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_supervisor, "STANDBY_AFTER_S", 0.0)
    present = supervisors.stack.supervisor
    present._standby_at_s = 0.0
    supervisors.stack.step_until(lambda: present._standby is not None)
    assert present._standby is not None
    standby = present._standby.process

    supervisors.start("new")
    supervisors.step_until(lambda: supervisors.new.driver is not None)
    supervisors.wait_until_ready()

    assert standby.returncode is not None
    report = read_report(supervisors.home)
    assert report is not None
    assert report.standby_pid == 0
    supervisors.stop_present()
    supervisors.take_over()
    supervisors.stack.wait_for_writes("old begins", "old ends", "new begins")


def test_without_memory_for_both_the_present_driver_is_stopped_first(supervisors: Supervisors) -> None:
    supervisors.start("new", standby="off")
    supervisors.wait_until_ready()
    assert supervisors.new.driver is None

    supervisors.stop_present()
    supervisors.take_over()

    supervisors.stack.wait_for_writes("old begins", "old ends", "new begins")
    assert ended_report(supervisors.home, supervisors.stack.launch_id) is None


def test_a_driver_that_is_withdrawn_ends_together_with_the_new_one(supervisors: Supervisors) -> None:
    supervisors.start(IS_NEVER_READY)
    supervisors.step_until(lambda: supervisors.new.driver is not None)
    new = supervisors.driver

    withdraw(supervisors.home)
    supervisors.step_until(
        lambda: ended_report(supervisors.home, supervisors.stack.launch_id) is not None and new.has_ended
    )

    assert supervisors.new.is_ready
    assert supervisors.stack.writes == ["old begins", "old ends"]
