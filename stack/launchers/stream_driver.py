"""The only stream driver of a FOLDLAKE_HOME: its lock, its state file, and how to stop it."""

import fcntl
import json
import os
import signal
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from include.errors import FoldlakeError
from include.files import FileLock, is_locked, write_atomically
from include.process import die_with_parent
from include.unknown_fields import read_record
from include.waiting import wait_for

POLL_INTERVAL_S = 0.1
# A start time is computed from two values that are not read atomically; the second has a resolution of one second.
START_TOLERANCE_S = 2.0


class DriverLockedError(FoldlakeError):
    """Another stream driver holds this home's lock."""

    @classmethod
    def held_by(cls, driver: "Driver | None", path: Path, waited_s: float) -> "DriverLockedError":
        """Return the error, which names the holder of the lock."""
        holder = f"process {driver.pid}" if driver else "an unknown process"
        return cls(
            f"The lock {path} is still held by {holder} after {waited_s:.0f} s, so no second stream driver was started."
            " Hint: the next attempt succeeds once that process has ended; `./foldlake status` shows it."
        )


@dataclass(frozen=True)
class Driver:
    """A running driver: the JVM that holds the lock, and its launcher; `started_s` is the result of `started_s()`."""

    pid: int
    parent_pid: int
    started_s: float
    master: str

    def process(self) -> psutil.Process | None:
        """Return this driver's JVM, or None when it has ended, even if another process now has its id."""
        try:
            process = psutil.Process(self.pid)
            same = abs(started_s(process) - self.started_s) < START_TOLERANCE_S
        except psutil.NoSuchProcess:
            return None
        return process if same else None

    def is_orphan(self) -> bool:
        """Whether this driver still runs although its launcher has ended, so that it is unsupervised."""
        process = self.process()
        try:
            return process is not None and process.ppid() != self.parent_pid
        except psutil.NoSuchProcess:
            return False

    def python(self) -> psutil.Process | None:
        """Return the driver's Python process, the one that handles SIGTERM; None until the JVM has started it."""
        process = self.process()
        try:
            children = process.children() if process else []
        except psutil.NoSuchProcess:
            return None
        living: list[psutil.Process] = []
        for child in children:
            # The JVM runs short-lived commands such as chmod: a child may have ended by now.
            with suppress(psutil.NoSuchProcess):
                # Processes started by spark-submit's shell scripts remain as zombies of the JVM, which replaced the scripts.
                if child.status() != psutil.STATUS_ZOMBIE:
                    living.append(child)
        # No race: `children` has already read these times.
        return min(living, key=psutil.Process.create_time, default=None)

    def kill(self) -> None:
        """Kill the JVM; its Python process ends with it."""
        process = self.process()
        if process is not None:
            with suppress(psutil.NoSuchProcess):
                process.kill()


def started_s(process: psutil.Process) -> float:
    """Return a process's start time in seconds since boot, which does not change when the clock is set.

    Raises psutil.NoSuchProcess when it has ended.
    """
    return process.create_time() - psutil.boot_time()


def directory(home: Path) -> Path:
    """Return the folder of the driver's lock, state file and temporary files."""
    return home / "stream"


def lock_path(home: Path) -> Path:
    """Return the file on which the driver holds an exclusive `flock` until it can no longer write."""
    return directory(home) / "driver.lock"


def acquire(home: Path, *, wait_s: float) -> FileLock:
    """Take the lock for this process and for the program that it becomes by `exec`.

    An orphaned driver that holds the lock is killed: on a kernel that does not end a child with its parent, it would
    run forever.

    Args:
        home: the home whose driver this will be.
        wait_s: how long to wait for another driver to end.

    Returns:
        The lock. It lasts until the last process that inherited it ends.

    Raises:
        DriverLockedError: another driver still held the lock after `wait_s`.
    """
    lock = FileLock(lock_path(home), survives_exec=True)

    def locked() -> bool:
        if lock.try_acquire():
            return True
        holder = _read(home)
        if holder and holder.is_orphan():
            holder.kill()
        return False

    if not wait_for(locked, timeout_s=wait_s, poll_s=POLL_INTERVAL_S):
        raise DriverLockedError.held_by(_read(home), lock.path, wait_s)
    return lock


def await_turn(home: Path, own: Driver, turn: Path) -> None:
    """Have a standby driver, which this process becomes by `exec`, get the lock as soon as the present driver has ended.

    A child process waits for the lock, in a file that both have open: the lock belongs to the open file, so this process holds it
    from then on, and until it ends, like any driver. The child announces the driver, creates the file `turn`, and ends.
    """
    path = lock_path(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    survives_exec = True
    os.set_inheritable(descriptor, survives_exec)
    standby_pid = os.getpid()
    if os.fork() != 0:
        return
    try:
        die_with_parent(standby_pid)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        announce(home, own)
        write_atomically(turn, "")
    except BaseException:  # noqa: BLE001 - of whatever kind: a driver that never gets its turn must not keep the lock
        os.kill(standby_pid, signal.SIGKILL)
    finally:
        os._exit(0)


def announce(home: Path, driver: Driver) -> None:
    """Record the driver that holds the lock. Only the holder may call this."""
    write_atomically(_state_path(home), json.dumps(asdict(driver)))


def running(home: Path) -> Driver | None:
    """Return the driver that holds the lock now, or None."""
    return _read(home) if is_locked(lock_path(home)) else None


def stop(home: Path, *, timeout_s: float) -> bool:
    """Stop the driver gracefully: SIGTERM to its Python process, which stops the queries.

    Returns:
        Whether it ended within `timeout_s`. If not, its JVM is killed, which loses no data, but the next driver
        reprocesses everything that was not committed.
    """
    driver = running(home)
    if driver is None:
        return True
    receiver = driver.python() or driver.process()
    if receiver is not None:
        with suppress(psutil.NoSuchProcess):
            receiver.send_signal(signal.SIGTERM)
    if wait_for(lambda: running(home) != driver, timeout_s=timeout_s, poll_s=POLL_INTERVAL_S):
        return True
    driver.kill()
    return False


def _state_path(home: Path) -> Path:
    return directory(home) / "driver.json"


def _read(home: Path) -> Driver | None:
    return read_record(Driver, _state_path(home))
