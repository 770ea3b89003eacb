"""What the stream supervisor records of launches: the report for Airflow's task, the series of failures, and its alert."""

import logging
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import SecretStr

from include.stream import driver_launch, launch_failures
from include.stream.driver_launch import LaunchReport
from include.stream.launch_failures import LaunchFailures, alert_if_due

LOG = logging.getLogger(__name__)


class LaunchRecords:
    """The records of one home, which survive a full disk: what cannot be stored is stored later, or not at all.

    report: of the newest launch.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self.report = LaunchReport("", os.getpid(), "")
        self._is_written = True

    def begin(self, launch_id: str) -> None:
        """Record a launch, which may be that of a driver that is brought back."""
        now = datetime.now(UTC)
        series = launch_failures.read(self._home, now)
        self.write_series(None if series is None else replace(series, launched_at=now.isoformat()))
        relaunches = self.report.relaunches + 1 if self.report.launch_id == launch_id else 0
        self.write(LaunchReport(launch_id, os.getpid(), now.isoformat(), relaunches))
        LOG.info("launching the stream driver: launch %s, relaunch %d", launch_id, relaunches)

    def take_over(self) -> None:
        """Continue the launch of another stream supervisor, whose driver has been replaced by a new one."""
        found = driver_launch.read_report(self._home) or self.report
        now = datetime.now(UTC).isoformat()
        self.write(replace(found, supervisor_pid=os.getpid(), launched_at=now, standby_pid=0))

    def end(self, error: str, output: str = "") -> None:
        """Record that the driver has ended, and that the next request launches another one."""
        self.write(replace(self.report, has_ended=True, error=error, output=output, standby_pid=0))

    def withdrawn(self, launch_id: str) -> None:
        """Record that a launch was withdrawn before it was made, or while no stream supervisor was running."""
        now = datetime.now(UTC).isoformat()
        self.write(LaunchReport(launch_id, os.getpid(), now, has_ended=True))

    def has_ended(self, launch_id: str) -> bool:
        """Whether this launch has ended."""
        if self.report.launch_id == launch_id:
            return self.report.has_ended
        return driver_launch.ended_report(self._home, launch_id) is not None

    def note_standby(self, pid: int) -> None:
        """Record the standby driver; 0: none."""
        self.write(replace(self.report, standby_pid=pid))

    def write(self, report: LaunchReport) -> None:
        """Store the report, with the next `retry` if that fails: a full disk does not end the driver."""
        self.report = report
        try:
            driver_launch.write_report(self._home, report)
        except OSError as error:
            if self._is_written:
                LOG.warning("what became of the stream driver cannot be stored: %s", error)
            self._is_written = False
        else:
            self._is_written = True

    def retry(self) -> None:
        """Store a report that could not be stored."""
        if not self._is_written:
            self.write(self.report)

    def write_series(self, series: LaunchFailures | None) -> None:
        """Store the series of failures; None: there is none."""
        try:
            if series is None:
                launch_failures.clear(self._home)
            else:
                launch_failures.write(self._home, series)
        except OSError as error:
            LOG.warning("the series of failed launches cannot be stored: %s", error)

    def alert(self, webhook_url: SecretStr) -> None:
        """Send the alert of the series if it is due; that of a series without a standby is the task's."""
        try:
            text = alert_if_due(self._home, webhook_url)
        except OSError as error:
            LOG.warning("no alert is sent, because it cannot be noted: %s", error)
        else:
            if text is not None:
                LOG.error("%s", text)
