"""The stream supervisor runs the driver that Airflow's task wants, brings it back when it fails, and leaves a series of failures to the task."""

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from include.settings import Settings
from include.stream import driver_launch, launch_failures
from include.stream.driver_launch import LaunchReport, ended_report, follow, read_report, withdraw
from include.stream.launch_failures import AT_ONCE_FAILURES
from stack.launchers import stream_supervisor
from stack.launchers.stream_supervisor import StreamSupervisor

SLEEPS = (sys.executable, "-c", "import time; time.sleep(600)")
FAILS = (sys.executable, "-c", "import sys; print('before'); sys.exit('ValueError: a wrong setting')")
ENDS = (sys.executable, "-c", "")
TIMEOUT_S = 30.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "stream").mkdir()
    return tmp_path


def supervisor(
    home: Path, command: tuple[str, ...], *, airflow_away: bool = False, standby: str = "off"
) -> StreamSupervisor:
    return StreamSupervisor(Settings.of(home=home, stream_standby=standby), command, lambda _: airflow_away)


def step_until(kept: StreamSupervisor, is_true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while not is_true():
        assert time.monotonic() < deadline_s
        kept.step()
        time.sleep(0.01)


def children() -> list[psutil.Process]:  # the newest last: ids begin again at a maximum
    found = sorted(psutil.Process().children(), key=psutil.Process.create_time)
    return [child for child in found if child.status() != psutil.STATUS_ZOMBIE]


def report(home: Path) -> LaunchReport:
    found = read_report(home)
    assert found is not None
    return found


def has_relaunched(home: Path, times: int) -> bool:
    return report(home).relaunches == times


def test_nothing_runs_before_a_driver_is_wanted(home: Path) -> None:
    before = children()

    supervisor(home, SLEEPS).step()

    assert children() == before
    assert read_report(home) is None


def test_the_driver_runs_until_it_is_withdrawn(home: Path) -> None:
    kept = supervisor(home, SLEEPS)
    before = children()

    launch_id = follow(home, "task 1")
    kept.step()
    (driver,) = set(children()) - set(before)
    assert not report(home).has_ended

    withdraw(home, "task 1")
    step_until(kept, lambda: ended_report(home, launch_id) is not None)
    assert not driver.is_running()
    assert (report(home).error, report(home).relaunches) == ("", 0)


def test_a_driver_that_is_killed_is_brought_back_without_the_task(home: Path) -> None:
    kept = supervisor(home, SLEEPS)
    launch_id = follow(home, "task 1")
    kept.step()

    for number in range(1, AT_ONCE_FAILURES + 1):
        children()[-1].kill()
        step_until(kept, partial(has_relaunched, home, number))

    assert ended_report(home, launch_id) is None
    series = launch_failures.read(home)
    assert series is not None
    assert (series.failures, series.last_error) == (AT_ONCE_FAILURES, "killed by SIGKILL")
    withdraw(home)
    step_until(kept, lambda: ended_report(home, launch_id) is not None)


def test_a_driver_that_fails_again_and_again_is_left_to_the_task(home: Path) -> None:
    kept = supervisor(home, FAILS)
    launch_id = follow(home, "task 1")

    step_until(kept, lambda: ended_report(home, launch_id) is not None)

    assert report(home).relaunches == AT_ONCE_FAILURES
    assert report(home).error == "ValueError: a wrong setting"
    assert report(home).output == "before\nValueError: a wrong setting\n"
    series = launch_failures.read(home)
    assert series is not None
    assert series.failures == AT_ONCE_FAILURES + 1

    # The next launch continues the series: its first failure goes to the task.
    launch_id = follow(home, "task 2")
    step_until(kept, lambda: ended_report(home, launch_id) is not None)
    assert report(home).relaunches == 0


@pytest.mark.parametrize("airflow_away", [True, False])
def test_the_supervisor_launches_the_next_driver_only_while_airflow_is_away(
    home: Path, monkeypatch: pytest.MonkeyPatch, airflow_away: bool
) -> None:
    monkeypatch.setattr(stream_supervisor, "AIRFLOW_INTERVAL_S", 0.0)
    monkeypatch.setattr(launch_failures, "FIRST_DELAY_S", 0.2)
    kept = supervisor(home, FAILS, airflow_away=airflow_away)
    launch_id = follow(home, "task 1")
    step_until(kept, lambda: ended_report(home, launch_id) is not None)
    assert report(home).relaunches == AT_ONCE_FAILURES

    for _ in range(0 if airflow_away else 100):
        kept.step()
        time.sleep(0.01)
    step_until(kept, lambda: (report(home).relaunches > AT_ONCE_FAILURES) == airflow_away)
    withdraw(home)
    step_until(kept, lambda: ended_report(home, launch_id) is not None)


def test_a_driver_that_was_stopped_by_a_signal_is_not_brought_back(home: Path) -> None:
    kept = supervisor(home, ENDS)
    launch_id = follow(home, "task 1")

    step_until(kept, lambda: ended_report(home, launch_id) is not None)

    assert report(home).error == ""
    assert launch_failures.read(home) is None
    kept.step()
    assert report(home).relaunches == 0


def test_a_new_supervisor_launches_the_driver_of_one_that_was_killed(home: Path) -> None:
    first = supervisor(home, SLEEPS)
    launch_id = follow(home, "task 1")
    first.step()
    orphan = children()[-1]
    orphan.kill()  # as the kernel does when the stream supervisor is killed
    assert first._driver is not None
    first._driver.process.wait()

    second = supervisor(home, SLEEPS)
    second.step()

    assert children()[-1].pid != orphan.pid
    assert ended_report(home, launch_id) is None
    withdraw(home)
    step_until(second, lambda: ended_report(home, launch_id) is not None)


def test_a_stopped_supervisor_stops_its_driver_which_the_next_one_launches_again(home: Path) -> None:
    kept = supervisor(home, SLEEPS)
    launch_id = follow(home, "task 1")
    kept.step()
    driver = children()[-1]

    kept.request_stop(15, None)
    kept.run()

    assert not driver.is_running()
    assert ended_report(home, launch_id) is None
    assert driver_launch.is_under_way(home)


def test_a_request_that_was_withdrawn_while_no_supervisor_ran_has_ended(home: Path) -> None:
    launch_id = follow(home, "task 1")
    withdraw(home, "task 1")
    before = children()

    supervisor(home, SLEEPS).step()

    assert ended_report(home, launch_id) is not None
    assert children() == before


def test_a_report_that_cannot_be_stored_does_not_end_the_driver(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_home: Path, _report: LaunchReport) -> None:
        raise OSError(28, "No space left on device")

    kept = supervisor(home, SLEEPS)
    launch_id = follow(home, "task 1")
    with monkeypatch.context() as disk:
        disk.setattr(driver_launch, "write_report", full)
        kept.step()
        driver = children()[-1]
        kept.step()
        assert read_report(home) is None

    kept.step()

    assert driver.is_running()
    assert report(home).launch_id == launch_id
    withdraw(home)
    step_until(kept, lambda: ended_report(home, launch_id) is not None)


def test_a_standby_takes_over_each_time_a_driver_is_killed(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_supervisor, "STANDBY_AFTER_S", 0.0)
    monkeypatch.setattr(stream_supervisor, "STANDBY_RETRY_S", 0.0)
    kept = supervisor(home, SLEEPS, standby="on")
    before = set(children())
    launch_id = follow(home, "task 1")
    step_until(kept, lambda: len(set(children()) - before) == 2)
    (standby,) = [child for child in set(children()) - before if child.cmdline()[-1] == "--standby"]
    (driver,) = set(children()) - before - {standby}

    for number in range(1, AT_ONCE_FAILURES + 2):
        driver.kill()
        step_until(kept, partial(has_relaunched, home, number))
        assert kept._driver is not None
        assert kept._driver.pid == standby.pid
        step_until(kept, lambda: len(set(children()) - before) == 2)
        driver, (standby,) = standby, set(children()) - before - {standby}

    assert ended_report(home, launch_id) is None
    series = launch_failures.read(home)
    assert series is not None
    assert (series.failures, series.alerted, bool(series.launched_at)) == (AT_ONCE_FAILURES + 1, True, True)
    withdraw(home)
    step_until(kept, lambda: ended_report(home, launch_id) is not None)
    assert set(children()) == before


def test_a_standby_does_not_take_over_from_a_driver_that_was_stopped(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_supervisor, "STANDBY_AFTER_S", 0.0)
    ends_on_request = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); time.sleep(600)"
    )
    kept = supervisor(home, (sys.executable, "-c", ends_on_request), standby="on")
    before = set(children())
    launch_id = follow(home, "task 1")
    step_until(kept, lambda: len(set(children()) - before) == 2)
    time.sleep(1.0)  # the handlers are set

    assert kept._driver is not None
    kept._driver.process.terminate()
    step_until(kept, lambda: ended_report(home, launch_id) is not None)

    assert report(home).error == ""
    assert set(children()) == before


def test_a_standby_that_ends_is_launched_again_later(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_supervisor, "STANDBY_AFTER_S", 0.0)
    monkeypatch.setattr(stream_supervisor, "STANDBY_RETRY_S", 0.5)
    kept = supervisor(home, SLEEPS, standby="on")
    before = set(children())
    launch_id = follow(home, "task 1")
    step_until(kept, lambda: kept._standby is not None)
    assert kept._standby is not None
    first = kept._standby.pid

    kept._standby.process.kill()
    step_until(kept, lambda: kept._standby is not None and kept._standby.pid != first)

    assert report(home).relaunches == 0
    withdraw(home)
    step_until(kept, lambda: ended_report(home, launch_id) is not None)
    assert set(children()) == before
