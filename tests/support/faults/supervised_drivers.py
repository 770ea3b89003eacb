"""Drivers without Spark of one home, and the stream supervisor that runs them; a test takes its steps."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from include.settings import Settings
from include.stream import driver_configuration, launch_failures
from include.stream.driver_configuration import DriverConfiguration, Handover, HandoverReport
from include.stream.driver_launch import ended_report, follow, read_report, withdraw
from stack.launchers.stream_supervisor import StreamSupervisor
from tests.support.faults.dummy_driver import writes

DRIVER = (sys.executable, "-m", "tests.support.faults.dummy_driver")
TIMEOUT_S = 30.0


class SupervisedDrivers:
    """A home with a stream supervisor, which the test steps."""

    def __init__(self, home: Path) -> None:
        (home / "stream").mkdir()
        self.home = home
        self.change("old")
        self.replace_supervisor()
        self.launch_id = follow(home, "task 1")

    def replace_supervisor(self) -> None:
        """Begin with a new stream supervisor."""
        self.supervisor = StreamSupervisor(Settings.of(home=self.home), DRIVER, lambda _: False)

    def change(self, behaviour: str, standby: str = "on", declarations: str = "") -> DriverConfiguration:
        """Request another configuration, as `up` does."""
        changed = Settings.of(home=self.home).changed(stream_driver_host=behaviour, stream_standby=standby)
        return driver_configuration.request(changed, declarations)

    def step_until(self, is_true: Callable[[], bool]) -> None:
        """Step until this is true."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while not is_true():
            assert time.monotonic() < deadline_s, (writes(self.home), self.report)
            self.supervisor.step()
            time.sleep(0.01)

    def wait_for(self, requested: DriverConfiguration, state: Handover) -> HandoverReport:
        """Step until the request is in this state."""
        self.step_until(lambda: (self.report.request, self.report.state) == (requested.request, state))
        return self.report

    def wait_for_writes(self, *lines: str) -> None:
        """Step until as many lines are written, and require these."""
        self.step_until(lambda: len(self.writes) >= len(lines))
        assert self.writes == list(lines)

    @property
    def report(self) -> HandoverReport:
        """What has become of the last change."""
        return driver_configuration.read_report(self.home) or HandoverReport("", "", "")

    @property
    def writes(self) -> list[str]:
        """What the drivers have done."""
        return writes(self.home)

    @property
    def candidate(self) -> psutil.Process | None:
        """The new driver while it gets ready."""
        found = self.supervisor._change.candidate
        return None if found is None else psutil.Process(found.pid)

    @property
    def driver(self) -> psutil.Process:
        """The driver, which has the lock or waits for it."""
        assert self.supervisor._driver is not None
        return psutil.Process(self.supervisor._driver.pid)

    def require_no_failure(self) -> None:
        """Require that Airflow's task sees no failure."""
        report = read_report(self.home)
        assert report is not None
        assert (report.launch_id, report.has_ended, report.standby_pid) == (self.launch_id, False, 0)
        assert launch_failures.read(self.home) is None


@contextmanager
def supervised_drivers(home: Path) -> Iterator[SupervisedDrivers]:
    """Run a driver that writes during a block; none of its processes may be left at the end."""
    before = set(psutil.Process().children())
    found = SupervisedDrivers(home)
    found.wait_for_writes("old begins")
    yield found
    withdraw(home)
    found.step_until(lambda: ended_report(home, found.launch_id) is not None)
    left = set(psutil.Process().children()) - before
    assert [process for process in left if process.status() != psutil.STATUS_ZOMBIE] == []
