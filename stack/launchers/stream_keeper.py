"""Keeps the stream driver running, independently of Airflow: `python -m stack.launchers.stream_keeper`.

Airflow's task says which driver is wanted (include/stream/driver_launch.py). The keeper launches it, and brings it back at once when it
ends unexpectedly. A driver that fails again and again is left to the task, which waits before the next launch, unless Airflow is away.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import IO

from include.airflow.client import AirflowApi
from include.errors import FoldlakeError
from include.files import FileLockedError, file_lock, is_locked
from include.settings import CHECKOUT, Settings
from include.stream import driver_launch, launch_series
from include.stream.driver_launch import LaunchReport
from include.stream.launch_error import error_line
from include.stream.launch_series import LaunchSeries
from stack.launchers import stream_driver
from stack.launchers.spark_submit import LAUNCHER

LOG = logging.getLogger("foldlake.stream-keeper")

POLL_INTERVAL_S = 0.1
# The driver's time limit to stop its queries.
STOP_TIMEOUT_S = 20.0
# A keeper that is killed releases its lock at once.
LOCK_WAIT_S = 10.0
# How long after a launch was due the keeper asks whether Airflow is away, and how often.
AIRFLOW_INTERVAL_S = 30.0
# What the report repeats of the driver's output.
OUTPUT_LINES = 60


@dataclass(frozen=True)
class Launched:
    """A driver of this keeper: its process, which becomes the JVM, and the reader of its output."""

    process: subprocess.Popen[str]
    at: datetime
    output: deque[str]
    reader: threading.Thread


class StreamKeeper:
    """Runs the driver that is wanted, until it is stopped itself."""

    def __init__(
        self, settings: Settings, command: tuple[str, ...], is_airflow_away: Callable[[], bool]
    ) -> None:
        """Keep the driver of this home; `command` becomes its JVM."""
        self._settings = settings
        self._home = settings.home
        self._command = command
        self._driver: Launched | None = None
        self._report = LaunchReport("", os.getpid(), "")
        self._is_written = True
        self._is_airflow_away = is_airflow_away
        self._ask_airflow_at_s = 0.0
        self._is_stopping = False

    def request_stop(self, _number: int, _frame: FrameType | None) -> None:
        """Handle SIGTERM: stop the driver, which the next keeper launches again."""
        self._is_stopping = True

    def run(self) -> None:
        """Run until a stop is requested. Called in the main thread: the driver dies with the thread that started it."""
        while not self._is_stopping:
            self.step()
            time.sleep(POLL_INTERVAL_S)
        if self._driver is not None:
            self._stop(self._driver)

    def step(self) -> None:
        """Do what is due: launch the driver, stop it, or handle its end."""
        if self._driver is not None and self._driver.process.poll() is not None:
            self._handle_end(self._driver)
        if not self._is_written:
            self._write(self._report)
        request = driver_launch.read_request(self._home)
        if request is None:
            return
        if self._driver is not None:
            if not request.is_wanted or self._report.launch_id != request.launch_id:
                self._stop(self._driver)
                self._end("")
            return
        if self._has_ended(request.launch_id):
            if request.is_wanted and self._is_left_alone():
                self._launch(request.launch_id)
        elif request.is_wanted:
            self._launch(request.launch_id)
        else:
            # Withdrawn before it was launched, or while no keeper was running.
            self._write(
                LaunchReport(request.launch_id, os.getpid(), datetime.now(UTC).isoformat(), has_ended=True)
            )

    def _is_left_alone(self) -> bool:
        """Whether the task that should have launched another driver by now cannot, because Airflow is away."""
        now_s = time.monotonic()
        if now_s < self._ask_airflow_at_s:
            return False
        self._ask_airflow_at_s = now_s + AIRFLOW_INTERVAL_S
        return self._is_airflow_away()

    def _launch(self, launch_id: str) -> None:
        now = datetime.now(UTC)
        series = launch_series.read(self._home, now)
        self._write_series(None if series is None else replace(series, launched_at=now.isoformat()))
        relaunches = self._report.relaunches + 1 if self._report.launch_id == launch_id else 0
        self._write(LaunchReport(launch_id, os.getpid(), now.isoformat(), relaunches))
        LOG.info("launching the stream driver: launch %s, relaunch %d", launch_id, relaunches)
        process = subprocess.Popen(
            self._command,
            cwd=CHECKOUT,
            env=os.environ | {LAUNCHER: str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        output: deque[str] = deque(maxlen=OUTPUT_LINES)
        assert process.stdout is not None  # noqa: S101 - because of stdout=PIPE
        reader = threading.Thread(target=_pass_on, args=(process.stdout, output), daemon=True)
        reader.start()
        self._driver = Launched(process, now, output, reader)

    def _handle_end(self, driver: Launched) -> None:
        status = driver.process.returncode
        self._forget(driver)
        if status == 0:
            # Someone has stopped it: only the next request launches another one.
            LOG.info("the stream driver has ended")
            self._end("")
            return
        output = "".join(driver.output)
        error = error_line(f"Error code is: {status}\n{output}")
        longest_s = self._settings.stream.longest_relaunch_delay_s
        before = launch_series.read(self._home, driver.at)
        series = launch_series.after_failure(before, driver.at, error, datetime.now(UTC), longest_s)
        self._write_series(series)
        LOG.warning("the stream driver has failed: %s", error)
        if series.failures > launch_series.AT_ONCE_FAILURES:
            self._end(error, output)
            wait_s = launch_series.delay_s(series.failures, longest_s)
            self._ask_airflow_at_s = time.monotonic() + wait_s + AIRFLOW_INTERVAL_S

    def _stop(self, driver: Launched) -> None:
        LOG.info("stopping the stream driver")
        running = stream_driver.running(self._home)
        if running is not None and running.pid == driver.process.pid:
            stream_driver.stop(self._home, timeout_s=STOP_TIMEOUT_S)
        else:
            # It does not hold the lock yet, so it has written nothing.
            driver.process.kill()
        driver.process.wait()
        self._forget(driver)

    def _forget(self, driver: Launched) -> None:
        # A process of the driver that outlives it may keep the pipe open.
        driver.reader.join(timeout=1.0)
        self._driver = None

    def _end(self, error: str, output: str = "") -> None:
        self._write(replace(self._report, has_ended=True, error=error, output=output))

    def _has_ended(self, launch_id: str) -> bool:
        if self._report.launch_id == launch_id:
            return self._report.has_ended
        return driver_launch.ended_report(self._home, launch_id) is not None

    def _write(self, report: LaunchReport) -> None:
        """Store the report, at the next step if that fails: a full disk does not end the driver."""
        self._report = report
        try:
            driver_launch.write_report(self._home, report)
        except OSError as error:
            if self._is_written:
                LOG.warning("what became of the stream driver cannot be stored: %s", error)
            self._is_written = False
        else:
            self._is_written = True

    def _write_series(self, series: LaunchSeries | None) -> None:
        try:
            if series is None:
                launch_series.clear(self._home)
            else:
                launch_series.write(self._home, series)
        except OSError as error:
            LOG.warning("the series of failed launches cannot be stored: %s", error)


def lock_path(home: Path) -> Path:
    """Return the file that the keeper of this home locks while it runs."""
    return stream_driver.directory(home) / "keeper.lock"


def is_running(home: Path) -> bool:
    """Whether this home has a keeper now."""
    return is_locked(lock_path(home))


def main() -> None:
    """Keep the driver of this home until SIGTERM; exits with an error if there is another keeper."""
    settings = Settings()
    logging.basicConfig(
        stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    with file_lock(lock_path(settings.home), wait_s=LOCK_WAIT_S, error=_another_keeper):
        _keep(settings)


def _keep(settings: Settings) -> None:
    airflow = AirflowApi(settings.airflow.base_url)

    def is_airflow_away() -> bool:
        return not {"scheduler", "triggerer"} <= airflow.health()

    command = (sys.executable, "-m", "stack.launchers.driver_submit")
    keeper = StreamKeeper(settings, command, is_airflow_away)
    signal.signal(signal.SIGTERM, keeper.request_stop)
    signal.signal(signal.SIGINT, keeper.request_stop)
    keeper.run()


def _another_keeper(locked: FileLockedError) -> FoldlakeError:
    return FoldlakeError(
        f"Process {locked.holder} keeps the stream driver of this home already: {locked.path} is locked."
        " Hint: run one keeper for each FOLDLAKE_HOME."
    )


def _pass_on(source: IO[str], output: deque[str]) -> None:
    """Pass the driver's output on to the keeper's own, and remember its end."""
    with source:
        for line in source:
            output.append(line)
            sys.stdout.write(line)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
