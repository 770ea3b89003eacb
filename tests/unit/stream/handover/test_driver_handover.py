"""A driver with another configuration gets ready beside the present one, which stays if the new one fails; there are never two writers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from include.settings import Settings
from include.stream import driver_configuration
from include.stream.driver_configuration import Handover
from include.stream.driver_launch import ended_report, follow, withdraw
from stack.launchers import driver_handover
from tests.support.faults.dummy_driver import FAILS, FAILS_WHEN_IT_WRITES, IS_NEVER_READY
from tests.support.faults.supervised_drivers import TIMEOUT_S, SupervisedDrivers, supervised_drivers


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[SupervisedDrivers]:
    """A stack whose driver writes."""
    with supervised_drivers(tmp_path) as found:
        yield found


def test_the_new_driver_takes_over_when_it_is_ready(stack: SupervisedDrivers) -> None:
    report = stack.wait_for(stack.change("new"), Handover.DONE)

    assert report.is_new
    stack.wait_for_writes("old begins", "old ends", "new begins")
    stack.require_no_failure()


def test_a_declaration_replaces_the_driver_as_well(stack: SupervisedDrivers) -> None:
    stack.wait_for(stack.change("old", declarations="another digest"), Handover.DONE)

    stack.wait_for_writes("old begins", "old ends", "old begins")


def test_the_same_configuration_changes_nothing(stack: SupervisedDrivers) -> None:
    driver = stack.driver

    report = stack.wait_for(stack.change("old"), Handover.DONE)

    assert not report.is_new
    assert stack.driver == driver


def test_a_new_driver_that_fails_is_given_up(stack: SupervisedDrivers) -> None:
    report = stack.wait_for(stack.change(FAILS), Handover.FAILED)

    assert report.error == "ValueError: a wrong setting"
    assert report.output == "ValueError: a wrong setting\n"
    kept = driver_configuration.read(stack.home)
    assert kept is not None
    assert (kept.settings().stream.driver_host, kept.request) == ("old", "")
    for _ in range(30):
        stack.supervisor.step()
    assert stack.candidate is None
    assert stack.writes == ["old begins"]
    assert stack.report == report
    stack.require_no_failure()

    # The next `up` tries again.
    stack.wait_for(stack.change(FAILS), Handover.FAILED)
    stack.wait_for(stack.change("new"), Handover.DONE)
    stack.wait_for_writes("old begins", "old ends", "new begins")


def test_settings_that_are_not_valid_are_given_up(stack: SupervisedDrivers) -> None:
    report = stack.wait_for(stack.change("new", standby="sometimes"), Handover.FAILED)

    assert "FOLDLAKE_STREAM_STANDBY" in report.error
    assert stack.writes == ["old begins"]


def test_a_new_driver_that_is_not_ready_in_time_is_given_up(
    stack: SupervisedDrivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_handover, "READY_TIMEOUT_S", 1.0)

    report = stack.wait_for(stack.change(IS_NEVER_READY), Handover.FAILED)

    assert report.error == "it was not ready after 1 s"
    assert stack.writes == ["old begins"]


def test_without_memory_for_two_drivers_the_old_one_is_stopped_first(stack: SupervisedDrivers) -> None:
    stack.wait_for(stack.change("new", standby="off"), Handover.DONE)

    stack.wait_for_writes("old begins", "old ends", "new begins")
    assert ended_report(stack.home, stack.launch_id) is None


@pytest.mark.parametrize(("behaviour", "standby"), [(FAILS, "off"), (FAILS_WHEN_IT_WRITES, "on")])
def test_a_driver_that_fails_after_it_has_replaced_another_one_is_replaced_by_that(
    stack: SupervisedDrivers, behaviour: str, standby: str
) -> None:
    report = stack.wait_for(stack.change(behaviour, standby), Handover.FAILED)

    assert report.error.startswith("ValueError: a wrong ")
    stack.step_until(lambda: stack.writes[-1] == "old begins" and len(stack.writes) > 2)
    assert ended_report(stack.home, stack.launch_id) is None
    kept = driver_configuration.read(stack.home)
    assert kept is not None
    assert kept.settings().stream.driver_host == "old"


def test_a_new_driver_that_is_killed_after_it_has_taken_over_is_launched_again(
    stack: SupervisedDrivers,
) -> None:
    requested = stack.change("new")
    stack.wait_for(requested, Handover.DONE)
    stack.wait_for_writes("old begins", "old ends", "new begins")

    stack.driver.kill()

    stack.wait_for_writes("old begins", "old ends", "new begins", "new begins")
    assert stack.report.request == requested.request
    assert stack.report.state == Handover.DONE


def test_a_new_driver_that_is_killed_while_it_gets_ready_is_given_up(stack: SupervisedDrivers) -> None:
    requested = stack.change(IS_NEVER_READY)
    stack.step_until(lambda: stack.candidate is not None)
    assert stack.candidate is not None

    stack.candidate.kill()

    assert stack.wait_for(requested, Handover.FAILED).error == "killed by SIGKILL"
    assert stack.writes == ["old begins"]


def test_an_old_driver_that_is_killed_before_the_new_one_is_ready_is_launched_again(
    stack: SupervisedDrivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested = stack.change(IS_NEVER_READY)
    stack.step_until(lambda: stack.candidate is not None)

    stack.driver.kill()

    stack.wait_for_writes("old begins", "old begins")
    assert stack.candidate is None
    assert stack.report.request == requested.request
    assert stack.report.state == Handover.UNDER_WAY
    monkeypatch.setattr(driver_handover, "READY_TIMEOUT_S", 1.0)
    stack.supervisor._change._not_before_s = 0.0
    stack.wait_for(requested, Handover.FAILED)
    assert stack.writes == ["old begins", "old begins"]


def test_an_old_driver_that_is_killed_when_the_new_one_is_ready_has_been_replaced(
    stack: SupervisedDrivers,
) -> None:
    requested = stack.change("new")
    stack.step_until(lambda: stack.candidate is not None)
    candidate = stack.supervisor._change.candidate
    assert candidate is not None
    assert candidate.ready.wait(TIMEOUT_S)

    stack.driver.kill()

    stack.wait_for_writes("old begins", "new begins")
    assert stack.wait_for(requested, Handover.DONE).is_new
    assert ended_report(stack.home, stack.launch_id) is None


def test_another_request_replaces_the_one_before(stack: SupervisedDrivers) -> None:
    stack.change(IS_NEVER_READY)
    stack.step_until(lambda: stack.candidate is not None)

    stack.wait_for(stack.change("new"), Handover.DONE)

    stack.wait_for_writes("old begins", "old ends", "new begins")


def test_the_same_request_again_goes_on_with_the_same_driver(stack: SupervisedDrivers) -> None:
    stack.change("new")
    stack.step_until(lambda: stack.candidate is not None)
    candidate = stack.candidate

    stack.wait_for(stack.change("new"), Handover.DONE)

    assert stack.driver == candidate


def test_a_request_for_the_configuration_before_ends_the_new_driver(stack: SupervisedDrivers) -> None:
    stack.change(IS_NEVER_READY)
    stack.step_until(lambda: stack.candidate is not None)

    report = stack.wait_for(stack.change("old"), Handover.DONE)

    assert not report.is_new
    assert stack.candidate is None
    assert stack.writes == ["old begins"]
    stack.require_no_failure()


@pytest.mark.parametrize("is_ready", [False, True])
def test_after_the_supervisor_was_killed_the_next_one_launches_the_new_driver(
    stack: SupervisedDrivers, is_ready: bool
) -> None:
    requested = stack.change("new" if is_ready else IS_NEVER_READY)
    stack.step_until(lambda: stack.candidate is not None)
    candidate = stack.supervisor._change.candidate
    assert candidate is not None
    assert candidate.ready.wait(TIMEOUT_S if is_ready else 0.0) == is_ready
    # As the kernel does when the stream supervisor is killed.
    for process in (stack.supervisor._driver, candidate):
        assert process is not None
        process.kill()

    stack.replace_supervisor()

    assert stack.wait_for(requested, Handover.DONE).request == requested.request
    stack.step_until(lambda: stack.writes[-1] == f"{'new' if is_ready else IS_NEVER_READY} begins")
    assert [line for line in stack.writes if line.startswith("old")] == ["old begins"]


def test_a_driver_that_is_withdrawn_ends_together_with_the_new_one(stack: SupervisedDrivers) -> None:
    stack.change(IS_NEVER_READY)
    stack.step_until(lambda: stack.candidate is not None)
    candidate = stack.candidate
    assert candidate is not None

    withdraw(stack.home)
    stack.step_until(lambda: ended_report(stack.home, stack.launch_id) is not None)

    assert not candidate.is_running()
    assert stack.writes == ["old begins", "old ends"]


def test_a_configuration_without_a_driver_is_that_of_the_next_one(stack: SupervisedDrivers) -> None:
    withdraw(stack.home)
    stack.step_until(lambda: ended_report(stack.home, stack.launch_id) is not None)

    stack.wait_for(stack.change("new"), Handover.DONE)
    stack.launch_id = follow(stack.home, "task 2")

    stack.wait_for_writes("old begins", "old ends", "new begins")


def test_the_configuration_is_private_and_has_the_settings(stack: SupervisedDrivers) -> None:
    requested = stack.change("new")

    assert driver_configuration.configuration_path(stack.home).stat().st_mode & 0o777 == 0o600
    assert driver_configuration.read(stack.home) == requested
    assert requested.settings() == Settings.of(home=stack.home, stream_driver_host="new", stream_standby="on")


def test_the_password_of_airflow_is_not_in_the_configuration(tmp_path: Path) -> None:
    settings = Settings.of(home=tmp_path, airflow_port=8081).changed(airflow_password="correct horse")  # noqa: S106

    requested = driver_configuration.request(settings, "")

    assert "correct horse" not in driver_configuration.configuration_path(tmp_path).read_text()
    assert requested.settings().airflow.base_url == settings.airflow.base_url
