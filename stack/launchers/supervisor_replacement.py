"""How a stream supervisor with new code replaces the present one: its driver gets ready first, and takes over the folds.

The new stream supervisor holds a lock of its own until it has that of the present one, and publishes its driver in a file. The present one launches
no standby meanwhile. When it is replaced, its driver passes the folds, as for another configuration. See decision 72.
"""

import json
import logging
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from include import process
from include.errors import FoldlakeError
from include.files import FileLock, is_locked, write_atomically
from include.stream import driver_launch, query_transfer
from include.stream.driver_configuration import DriverConfiguration
from include.stream.launch_failures import error_line
from include.stream.query_transfer import QueryTransfer
from include.unknown_fields import read_record
from stack.launchers import stream_driver
from stack.launchers.driver_handover import READY_TIMEOUT_S, TRANSFER_TIMEOUT_S, standby_fits
from stack.launchers.driver_process import DriverProcess

LOG = logging.getLogger(__name__)

# The present stream supervisor ends its standby within this time.
STANDBY_END_S = 5.0
LOCK_WAIT_S = 10.0
POLL_INTERVAL_S = 0.1


class ReplacementError(FoldlakeError):
    """A new stream supervisor does not replace the present one."""


@dataclass(frozen=True)
class Successor:
    """The driver of a new stream supervisor. pid: 0 if none is to be launched before the present one has ended. is_ready: to take over."""

    pid: int = 0
    is_ready: bool = False


def successor(home: Path) -> Successor | None:
    """Return the driver of the new stream supervisor; None if there is none."""
    if not is_locked(_lock_path(home)):
        return None
    return read_record(Successor, _path(home)) or Successor()


def _lock_path(home: Path) -> Path:
    return stream_driver.directory(home) / "next-supervisor.lock"


def _path(home: Path) -> Path:
    return stream_driver.directory(home) / "next-supervisor.json"


class Replacement:
    """The present stream supervisor's side. is_replaced: whether another one waits for its end."""

    def __init__(self, home: Path, is_replaced: Callable[[], bool]) -> None:
        self._home = home
        self._is_replaced = is_replaced
        self._transfer_end_s = math.inf
        self.successor: Successor | None = None

    def observe(self) -> Successor | None:
        """Return the driver of the new stream supervisor. If it has ended, the present driver takes its folds back."""
        self.successor = successor(self._home)
        if self.successor is None and self.is_under_way:
            LOG.warning("the new stream supervisor has ended: this one goes on")
            self._end_transfer()
        return self.successor

    @property
    def has_driver(self) -> bool:
        """Whether a driver is ready to take over."""
        return self.successor is not None and self.successor.pid != 0 and self.successor.is_ready

    @property
    def is_under_way(self) -> bool:
        """Whether the driver passes its folds to the new one."""
        return self._transfer_end_s < math.inf

    @property
    def is_overdue(self) -> bool:
        """Whether the driver has to be stopped, because it has not passed its folds in time."""
        return time.monotonic() >= self._transfer_end_s

    def begin(self, driver: DriverProcess) -> bool:
        """Have the driver pass its folds to the new one; return whether it does. Called when a stop is requested."""
        found = self.observe()
        if found is None or not self.has_driver or not self._is_replaced() or self.is_under_way:
            self._end_transfer()
            return False
        LOG.info("the driver passes its folds to process %d", found.pid)
        try:
            query_transfer.begin(self._home, QueryTransfer(driver.pid, found.pid))
        except OSError as error:
            LOG.warning("the driver is stopped instead of passing its folds: %s", error)
            return False
        self._transfer_end_s = time.monotonic() + TRANSFER_TIMEOUT_S
        return True

    def _end_transfer(self) -> None:
        if self.is_under_way:
            self._transfer_end_s = math.inf
            query_transfer.end(self._home)


class NextSupervisor:
    """The new stream supervisor's side, until it has the lock of the present one. wanted: the configuration of its driver."""

    def __init__(
        self, home: Path, lock: FileLock, wanted: DriverConfiguration, command: tuple[str, ...]
    ) -> None:
        self._home = home
        self._lock = lock
        self._wanted = wanted
        self._command = command
        self._is_published: Successor | None = None
        self._began_s = time.monotonic()
        self._has_chosen = False
        self.is_stopping = False
        self.driver: DriverProcess | None = None
        self._own_lock = FileLock(_lock_path(home))
        # Before the lock: what an earlier one has written is not valid.
        self._publish(Successor())
        self._own_lock.acquire(wait_s=LOCK_WAIT_S)

    @property
    def pid(self) -> int:
        """The process of the driver; 0 if there is none."""
        return 0 if self.driver is None else self.driver.pid

    @property
    def is_ready(self) -> bool:
        """Whether the present stream supervisor may end: a driver is ready, or none is to be launched before."""
        return self._has_chosen and (self.driver is None or self.driver.is_ready)

    def request_stop(self, _number: int, _frame: FrameType | None) -> None:
        """Handle SIGTERM: the present stream supervisor goes on."""
        self.is_stopping = True

    def wait(self) -> None:
        """Report when the present stream supervisor may end, and return when this one has replaced it. Called in the main thread.

        Raises ReplacementError.
        """
        try:
            is_reported = False
            while not self.step():
                if self.is_ready and not is_reported:
                    process.report_ready()
                    is_reported = True
                time.sleep(POLL_INTERVAL_S)
        except BaseException:
            self.close()
            raise

    def step(self) -> bool:
        """Do what is due; return whether this is the stream supervisor now.

        Raises ReplacementError when the driver has failed, or a stop is requested.
        """
        # The order matters: a driver that is killed with its supervisor ends after the supervisor's lock is free.
        error = "A stop is requested." if self.is_stopping else self._error()
        if self._lock.try_acquire():
            self._own_lock.release()
            return True
        if error:
            raise ReplacementError(error)
        if self.driver is not None and not self._is_driver_wanted():
            LOG.info("no driver is wanted any more")
            self.end()
        elif not self._has_chosen:
            self._choose()
        self._publish(Successor(self.pid, self.is_ready))
        return False

    def close(self) -> None:
        """Give up: the present stream supervisor goes on."""
        self.end()
        self._own_lock.release()

    def end(self) -> None:
        """End the driver. The present one takes back the folds that it has passed to it."""
        if self.driver is not None:
            self.driver.kill()
            self.driver = None

    def _is_driver_wanted(self) -> bool:
        request = driver_launch.read_request(self._home)
        return request is not None and request.is_wanted and driver_launch.is_under_way(self._home)

    def _choose(self) -> None:
        """Launch a driver if the present one runs, and there is memory for both."""
        report = driver_launch.read_report(self._home)
        has_standby = report is not None and report.standby_pid != 0
        if has_standby and time.monotonic() < self._began_s + STANDBY_END_S:
            return
        self._has_chosen = True
        is_running = stream_driver.running(self._home) is not None
        if is_running and self._is_driver_wanted() and standby_fits(self._wanted.settings().stream):
            LOG.info("launching a driver, which is to replace the present one")
            self.driver = DriverProcess.launch(
                (*self._command, "--standby", "--handover"), self._wanted.environment
            )

    def _error(self) -> str:
        """Return why the driver cannot replace the present one; empty while that is open."""
        driver = self.driver
        if driver is None:
            return ""
        if driver.has_ended:
            reason = error_line(f"Error code is: {driver.process.returncode}\n{driver.output}")
            return f"The driver of the new stream supervisor has failed: {reason}"
        if driver.is_ready:
            return ""
        present = stream_driver.running(self._home)
        if present is not None and present.pid == driver.pid:
            # The present one is launched again, for which it needs the lock.
            return "The present driver has ended before the new one was ready."
        if time.monotonic() >= self._began_s + READY_TIMEOUT_S:
            return f"The driver of the new stream supervisor was not ready after {READY_TIMEOUT_S:.0f} s."
        return ""

    def _publish(self, found: Successor) -> None:
        if found != self._is_published:
            write_atomically(_path(self._home), json.dumps(asdict(found)))
            self._is_published = found
