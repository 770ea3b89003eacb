"""Replaces the stream driver by one with another configuration: the new one gets ready beside it, as a standby, before it is stopped.

A new driver that fails, or is not ready in time, is ended, and the old one stays. One that fails soon after it has taken over is replaced by one
with the old configuration.
"""

import logging
import math
import time
from pathlib import Path

from include.errors import SettingsError
from include.files import FileLockedError
from include.machine import available_bytes
from include.settings import Settings, StreamSettings
from include.stream import driver_configuration, query_transfer
from include.stream.driver_configuration import DriverConfiguration, Handover, HandoverReport
from include.stream.launch_failures import error_line
from include.stream.query_transfer import QueryTransfer
from stack.launchers.driver_process import DriverProcess

LOG = logging.getLogger(__name__)

# A new driver waits up to two minutes for Kafka and the registry, and runs each query for six seconds.
READY_TIMEOUT_S = 600.0
# Longer than a driver waits for commits, before it passes its folds without one. Then it is stopped, and they pass together.
TRANSFER_TIMEOUT_S = 180.0
# How long after it has replaced another one a driver's failure is taken for an error in its configuration.
TRIAL_S = 60.0
# A driver that had to be launched again needs every core at first.
RETRY_S = 30.0
# For `auto`: available memory in bytes for each byte of the driver's heap.
STANDBY_MEMORY = 3
KILLED = -9


class DriverHandover:
    """The configuration of the driver, and the new driver that is to replace it.

    current: the configuration of the driver; None: that of this process's environment.
    """

    def __init__(self, home: Path, settings: Settings) -> None:
        """Begin with the requested configuration, or with these settings if there is none."""
        self._home = home
        self._own_settings = settings
        self.current = driver_configuration.read(home)
        self.candidate: DriverProcess | None = None
        self._wanted: DriverConfiguration | None = None
        self._before: DriverConfiguration | None = None
        self._trial_end_s = 0.0
        self._not_before_s = 0.0
        self._timeout_at_s = math.inf
        self._transfer_end_s = math.inf
        # Of a stream supervisor that was killed.
        query_transfer.end(home)
        self._reported = ""
        self._rejected = ""

    @property
    def settings(self) -> Settings:
        """The settings of the driver."""
        return self._own_settings if self.current is None else self.current.settings()

    def launch(self, command: tuple[str, ...]) -> DriverProcess:
        """Launch a driver, or its standby, with the present configuration."""
        return DriverProcess.launch(command, None if self.current is None else self.current.environment)

    def wanted(self) -> DriverConfiguration | None:
        """Return the requested configuration if it is another one than the driver's and a new driver may be launched now."""
        wanted = driver_configuration.read(self._home)
        if wanted is None or wanted.is_like(self.current):
            self.end_candidate()
            if wanted is not None and wanted.request not in ("", self._reported):
                self._report(wanted, Handover.DONE)
            return None
        if wanted.request == self._rejected:
            # The file could not be written.
            return None
        if self.candidate is not None and wanted.is_like(self._wanted):
            # Another `up` has requested the same.
            self._wanted = wanted
        return wanted if time.monotonic() >= self._not_before_s else None

    def is_prepared(self, wanted: DriverConfiguration) -> bool:
        """Whether a new driver with this configuration is ready, or getting ready."""
        return self.candidate is not None and wanted.is_like(self._wanted)

    def adopt(self, wanted: DriverConfiguration) -> None:
        """Have the next driver launched with this configuration: none runs."""
        self.end_candidate()
        self.current, self._before = wanted, None
        self._report(wanted, Handover.DONE)

    def prepare(self, wanted: DriverConfiguration, command: tuple[str, ...]) -> DriverProcess:
        """Launch a new driver, which becomes ready and waits for the lock, and return it."""
        self.end_candidate()
        LOG.info("launching a driver with the new configuration")
        self._wanted = wanted
        self._timeout_at_s = time.monotonic() + READY_TIMEOUT_S
        self.candidate = DriverProcess.launch((*command, "--standby", "--handover"), wanted.environment)
        self._report(wanted, Handover.UNDER_WAY)
        return self.candidate

    @property
    def is_ready(self) -> bool:
        """Whether the new driver is ready to replace the present one."""
        return self.candidate is not None and self.candidate.is_ready

    @property
    def is_transferring(self) -> bool:
        """Whether the driver passes its folds to the new one."""
        return self._transfer_end_s < math.inf

    @property
    def is_transfer_overdue(self) -> bool:
        """Whether that takes too long, so that the driver has to be stopped."""
        return time.monotonic() >= self._transfer_end_s

    def begin_transfer(self, driver: DriverProcess) -> None:
        """Have the driver pass its folds to the new one, which is ready, and end."""
        assert self.candidate is not None  # noqa: S101 - because it is ready
        self._timeout_at_s = math.inf
        self._transfer_end_s = time.monotonic() + TRANSFER_TIMEOUT_S
        try:
            query_transfer.begin(self._home, QueryTransfer(driver.pid, self.candidate.pid))
        except OSError as error:
            LOG.warning("the driver is stopped instead of passing its folds: %s", error)
            self._transfer_end_s = 0.0

    def _end_transfer(self) -> None:
        self._transfer_end_s = math.inf
        query_transfer.end(self._home)

    def failure(self) -> str:
        """Return why the new driver cannot replace the present one; empty while that is open."""
        candidate = self.candidate
        if candidate is None:
            return ""
        if candidate.has_ended:
            return error_line(f"Error code is: {candidate.process.returncode}\n{candidate.output}")
        if time.monotonic() >= self._timeout_at_s:
            return f"it was not ready after {READY_TIMEOUT_S:.0f} s"
        return ""

    @property
    def output(self) -> str:
        """The last lines of the new driver's output."""
        return "" if self.candidate is None else self.candidate.output

    def reject(self, wanted: DriverConfiguration, error: str, output: str = "") -> None:
        """Give this configuration up: it is no longer requested."""
        LOG.error("the new configuration of the stream driver is rejected: %s", error)
        self.end_candidate()
        self._rejected = wanted.request
        self._write(HandoverReport.now(wanted.request, Handover.FAILED, error=error, output=output))
        try:
            driver_configuration.reject(self._home, wanted.request, self.current)
        except (OSError, FileLockedError) as problem:
            LOG.warning("the configuration before cannot be stored: %s", problem)

    def postpone(self) -> None:
        """End a new driver that is not ready: the present one has failed, and must be launched again first."""
        if self.candidate is not None:
            self.end_candidate()
            self._not_before_s = time.monotonic() + RETRY_S

    def end_candidate(self) -> None:
        """End the new driver. The present one takes back the folds that it has passed to it."""
        if self.candidate is not None:
            self.candidate.kill()
            self.candidate = None
            self._end_transfer()

    def begin_trial(self, wanted: DriverConfiguration) -> None:
        """Note that the driver has this configuration from now on."""
        self._before, self.current = self.current, wanted
        self.candidate = None
        self._end_transfer()
        self._trial_end_s = time.monotonic() + TRIAL_S
        self._report(wanted, Handover.DONE, is_new=True)

    def take_candidate(self) -> DriverProcess | None:
        """Return the new driver if it is ready, and note that it takes over."""
        candidate = self.candidate
        if candidate is None or not candidate.is_ready or self._wanted is None:
            return None
        self.begin_trial(self._wanted)
        return candidate

    def revert(self, driver: DriverProcess, error: str) -> bool:
        """Return to the configuration before, if the driver has failed soon after it had got its own; return whether it has.

        Not if somebody has killed it.
        """
        before, self._before = self._before, None
        failed = self.current
        is_trial = before is not None and time.monotonic() < self._trial_end_s
        if failed is None or not is_trial or driver.process.returncode == KILLED:
            return False
        self.current = before
        self.reject(failed, error, driver.output)
        return True

    def _report(self, wanted: DriverConfiguration, state: Handover, *, is_new: bool = False) -> None:
        self._reported = wanted.request
        self._write(HandoverReport.now(wanted.request, state, is_new=is_new))

    def _write(self, report: HandoverReport) -> None:
        try:
            driver_configuration.write_report(self._home, report)
        except OSError as error:
            # A full disk does not end the driver; an `up` that waits for the report gives up.
            LOG.warning("what became of the new configuration cannot be stored: %s", error)


def standby_fits(stream: StreamSettings) -> bool:
    """Whether there is to be a standby driver: as the setting says, or if there is memory for it. On a cluster it would need slots."""
    if stream.standby == "auto":
        return (
            not stream.master and available_bytes() >= STANDBY_MEMORY * stream.driver_memory_mb * 1024 * 1024
        )
    return stream.standby == "on"


def settings_error(wanted: DriverConfiguration) -> str:
    """Return why the settings of a configuration are not valid; empty if they are."""
    try:
        wanted.settings()
    except SettingsError as error:
        return str(error)
    return ""
