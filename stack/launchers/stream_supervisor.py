"""Keeps the stream driver running, independently of Airflow. stack/components/stream_process.py is its program.

Airflow's task says which driver is wanted (include/stream/driver_launch.py). The stream supervisor launches it, and brings it back at once when it
ends unexpectedly: by a standby driver, which waits beside it for its lock, or else by a new one. A driver that fails again and again,
and has no standby, is left to the task, which waits before the next launch, unless Airflow is away. One with new code gets its driver ready
beside the present one (stack/launchers/supervisor_replacement.py).
"""

import logging
import math
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from include import process
from include.files import is_locked
from include.settings import Settings
from include.stream import driver_launch, launch_failures
from include.stream.driver_configuration import DriverConfiguration
from include.stream.launch_failures import LaunchFailures, error_line
from include.stream.query_transfer import HANDED_OVER
from stack.launchers import stream_driver
from stack.launchers.driver_handover import DriverHandover, settings_error, standby_fits
from stack.launchers.driver_process import DriverProcess
from stack.launchers.launch_records import LaunchRecords
from stack.launchers.supervisor_replacement import Replacement

LOG = logging.getLogger("foldlake.stream-supervisor")

POLL_INTERVAL_S = 0.1
DRIVER_COMMAND = (sys.executable, "-m", "stack.launchers.driver_submit")
# The driver's time limit to stop its queries.
STOP_TIMEOUT_S = 20.0
# How long after a launch was due the stream supervisor asks whether Airflow is away, and how often.
AIRFLOW_INTERVAL_S = 30.0
# A driver that has just been launched needs every core; and if it fails at once, another one would fail as well.
STANDBY_AFTER_S = 30.0
STANDBY_RETRY_S = 60.0


class StreamSupervisor:
    """Runs the driver that is wanted, until it is stopped itself."""

    def __init__(
        self,
        settings: Settings,
        command: tuple[str, ...],
        is_airflow_away: Callable[[Settings], bool],
        is_replaced: Callable[[], bool] = process.is_replaced,
    ) -> None:
        """Keep the driver of this home; `command` becomes its JVM. The requested configuration replaces the settings."""
        self._home = settings.home
        self._replacement = Replacement(settings.home, is_replaced)
        self._change = DriverHandover(settings.home, settings)
        self._command = command
        self._driver: DriverProcess | None = None
        self._standby: DriverProcess | None = None
        self._standby_at_s = math.inf
        self._records = LaunchRecords(settings.home)
        self._is_airflow_away = is_airflow_away
        self._ask_airflow_at_s = 0.0
        self._is_stopping = False
        self._has_passed = False

    def request_stop(self, _number: int, _frame: FrameType | None) -> None:
        """Handle SIGTERM: stop the driver, which the next stream supervisor launches again, or pass its folds to that one's."""
        self._is_stopping = True

    def continue_with(self, driver: DriverProcess, configuration: DriverConfiguration) -> None:
        """Begin with a driver that is ready, or getting ready, instead of that of the stream supervisor before."""
        self._change.current = configuration
        self._become_driver(driver.from_now())
        self._records.take_over()

    def run(self) -> None:
        """Run until a stop is requested. Called in the main thread: the driver dies with the thread that started it."""
        while not self.is_over():
            self.step()
            time.sleep(POLL_INTERVAL_S)
        if not self._has_passed:
            self._stop()

    def is_over(self) -> bool:
        """Return whether to stop now. If another stream supervisor waits for that, the driver passes its folds before."""
        if self._is_stopping and self._driver is not None and self._replacement.begin(self._driver):
            self._is_stopping = False
        return self._is_stopping or self._has_passed

    def step(self) -> None:
        """Do what is due: launch the driver, stop it, replace it, or handle its end."""
        is_followed = self._replacement.observe() is not None
        if self._driver is not None and self._driver.has_ended:
            if self._replacement.has_driver:
                LOG.info("the driver of the new stream supervisor goes on")
                self._has_passed = True
                return
            self._handle_end(self._driver)
        self._records.retry()
        if is_followed:
            # There is memory for the new stream supervisor's driver instead.
            self._end_standby()
            self._standby_at_s = time.monotonic() + STANDBY_RETRY_S
        else:
            self._keep_standby()
        self._follow_request()
        if not is_followed:
            self._follow_configuration()
        elif self._replacement.is_under_way:
            if self._replacement.is_overdue:
                LOG.warning("the driver has not passed its folds in time: stopping it")
                self._stop_driver()
            self._has_passed = self._driver is None

    def _follow_request(self) -> None:
        request = driver_launch.read_request(self._home)
        if request is None:
            return
        if self._driver is not None:
            if not request.is_wanted or self._records.report.launch_id != request.launch_id:
                self._stop()
                self._records.end("")
            return
        if self._records.has_ended(request.launch_id):
            if request.is_wanted and self._is_left_alone():
                self._launch(request.launch_id)
        elif request.is_wanted:
            self._launch(request.launch_id)
        else:
            self._records.withdrawn(request.launch_id)

    def _follow_configuration(self) -> None:
        """Replace the driver by one with the requested configuration."""
        had_candidate = self._change.candidate is not None
        wanted = self._change.wanted()
        if had_candidate and self._change.candidate is None:
            self._records.note_standby(0)
        if wanted is None:
            return
        error = settings_error(wanted) or self._change.failure()
        if error:
            output = self._change.output
            self._change.reject(wanted, error, output)
            self._records.note_standby(0)
        elif self._driver is None:
            self._change.adopt(wanted)
        elif not self._change.is_prepared(wanted):
            self._end_standby()
            self._standby_at_s = time.monotonic() + STANDBY_RETRY_S
            if standby_fits(wanted.settings().stream):
                self._records.note_standby(self._change.prepare(wanted, self._command).pid)
            else:
                self._stop()
                self._change.begin_trial(wanted)
                self._launch(self._records.report.launch_id)
        elif not self._change.is_ready:
            return
        elif not self._change.is_transferring:
            LOG.info("the driver with the new configuration is ready")
            self._change.begin_transfer(self._driver)
        elif self._change.is_transfer_overdue:
            LOG.warning("the driver has not passed its folds in time: stopping it")
            self._stop_driver()
            self._replace()

    def _replace(self) -> None:
        """Go on with the new driver, which takes the lock: the present one has ended."""
        ready = self._change.take_candidate()
        if ready is None:
            # It has been killed meanwhile.
            self._launch(self._records.report.launch_id)
        else:
            self._become_driver(ready.from_now())
            self._records.write(
                replace(self._records.report, launched_at=datetime.now(UTC).isoformat(), standby_pid=0)
            )

    def _is_left_alone(self) -> bool:
        """Whether the task that should have launched another driver by now cannot, because Airflow is away."""
        now_s = time.monotonic()
        if now_s < self._ask_airflow_at_s:
            return False
        self._ask_airflow_at_s = now_s + AIRFLOW_INTERVAL_S
        return self._is_airflow_away(self._change.settings)

    def _launch(self, launch_id: str) -> None:
        self._records.begin(launch_id)
        self._become_driver(self._change.launch(self._command))

    def _become_driver(self, driver: DriverProcess) -> None:
        self._driver = driver
        self._standby_at_s = time.monotonic() + STANDBY_AFTER_S

    def _keep_standby(self) -> None:
        """Launch a standby when it is due; forget one that has ended."""
        if self._standby is not None and self._standby.has_ended:
            LOG.warning("the standby driver has ended: %s", error_line(self._standby.output))
            self._standby = None
            self._standby_at_s = time.monotonic() + STANDBY_RETRY_S
            self._records.note_standby(0)
        is_due = self._driver is not None and time.monotonic() >= self._standby_at_s
        if self._standby is None and self._change.candidate is None and is_due:
            self._standby_at_s = time.monotonic() + STANDBY_RETRY_S
            if standby_fits(self._change.settings.stream):
                LOG.info("launching a standby driver")
                self._standby = self._change.launch((*self._command, "--standby"))
                self._records.note_standby(self._standby.pid)

    def _end_standby(self) -> None:
        """End the standby: it has written nothing. Before the driver is stopped, or the standby would take over."""
        if self._standby is not None:
            self._standby.kill()
            self._standby = None
        self._change.end_candidate()
        if self._records.report.standby_pid:
            self._records.note_standby(0)
        self._standby_at_s = math.inf

    def _handle_end(self, driver: DriverProcess) -> None:
        status = driver.process.returncode
        self._driver = None
        if status == HANDED_OVER:
            self._replace()
            return
        if status == 0:
            # Someone has stopped it: only the next request launches another one.
            LOG.info("the stream driver has ended")
            self._end_standby()
            self._records.end("")
            return
        output = driver.output
        error = error_line(f"Error code is: {status}\n{output}")
        if self._change.revert(driver, error):
            # It has the configuration that has failed.
            self._end_standby()
        if (ready := self._change.take_candidate()) is not None:
            self._standby = ready
        else:
            self._change.postpone()
        longest_s = self._change.settings.stream.longest_relaunch_delay_s
        before = launch_failures.read(self._home, driver.at)
        series = launch_failures.after_failure(before, driver.at, error, datetime.now(UTC), longest_s)
        self._records.write_series(series)
        LOG.warning("the stream driver has failed: %s", error)
        is_long = series.failures > launch_failures.AT_ONCE_FAILURES
        if self._standby is not None and not self._standby.has_ended:
            # It costs no launch, which is what the delays of a series limit; the launch of the next standby is delayed instead.
            self._take_over(self._standby.from_now(), series)
            if is_long:
                self._standby_at_s = time.monotonic() + STANDBY_RETRY_S
                self._records.alert(self._change.settings.quality.alert_webhook_url)
        elif is_long:
            self._end_standby()
            self._records.end(error, output)
            wait_s = launch_failures.delay_s(series.failures, longest_s)
            self._ask_airflow_at_s = time.monotonic() + wait_s + AIRFLOW_INTERVAL_S

    def _take_over(self, standby: DriverProcess, series: LaunchFailures) -> None:
        """Continue the launch with the standby, which has taken the lock by now."""
        LOG.info("the standby driver takes over: process %d", standby.pid)
        self._standby = None
        self._become_driver(standby)
        relaunches = self._records.report.relaunches + 1
        at = standby.at.isoformat()
        self._records.write_series(replace(series, launched_at=at))
        self._records.write(
            replace(self._records.report, launched_at=at, relaunches=relaunches, standby_pid=0)
        )

    def _stop(self) -> None:
        self._end_standby()
        self._stop_driver()

    def _stop_driver(self) -> None:
        driver, self._driver = self._driver, None
        if driver is None:
            return
        LOG.info("stopping the stream driver")
        running = stream_driver.running(self._home)
        if running is not None and running.pid == driver.pid:
            stream_driver.stop(self._home, timeout_s=STOP_TIMEOUT_S)
        else:
            # It does not hold the lock yet, so it has written nothing.
            driver.process.kill()
        driver.process.wait()


def lock_path(home: Path) -> Path:
    """Return the file that the stream supervisor of this home locks while it runs."""
    # The name in earlier releases: a supervisor of theirs excludes one of this release.
    return stream_driver.directory(home) / "keeper.lock"


def is_running(home: Path) -> bool:
    """Whether this home has a stream supervisor now."""
    return is_locked(lock_path(home))
