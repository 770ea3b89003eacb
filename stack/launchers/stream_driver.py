"""Who the one stream driver of a FOLDLAKE_HOME is: its lock, what it says of itself, and how to stop it."""

import fcntl
import json
import os
import signal
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from include.errors import FoldlakeError
from include.settings import Settings

POLL_INTERVAL_S = 0.1
# Both times that a start time is made of are read one after the other, and in whole seconds the second of them.
START_TOLERANCE_S = 2.0


class DriverLockedError(FoldlakeError):
    """Another stream driver holds this home's lock."""

    @classmethod
    def held_by(cls, driver: "Driver | None", path: Path, waited_s: float) -> "DriverLockedError":
        """Name the holder: two drivers on one checkpoint must never write together."""
        holder = f"process {driver.pid}" if driver else "an unknown process"
        return cls(
            f"The lock {path} is still held by {holder} after {waited_s:.0f} s, so a second stream driver was not"
            " started. Hint: the next try succeeds once that process has ended; `./foldlake status` shows it."
        )


@dataclass(frozen=True)
class Driver:
    """A running driver: the JVM that holds the lock, and what launched it; `started_s` as `started_s()` has it."""

    pid: int
    parent_pid: int
    started_s: float
    master: str

    def process(self) -> psutil.Process | None:
        """Return this driver's JVM, or None when it has ended (process ids are used again)."""
        try:
            process = psutil.Process(self.pid)
            same = abs(started_s(process) - self.started_s) < START_TOLERANCE_S
        except psutil.NoSuchProcess:
            return None
        return process if same else None

    def is_orphan(self) -> bool:
        """Tell whether this driver runs while what launched it is gone, so that nobody supervises it any more."""
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
            # The JVM runs short commands (chmod), so a child may be gone by now.
            with suppress(psutil.NoSuchProcess):
                # What spark-submit's shell scripts left behind are zombies of the JVM that they became.
                if child.status() != psutil.STATUS_ZOMBIE:
                    living.append(child)
        # `children` has read these times already.
        return min(living, key=psutil.Process.create_time, default=None)

    def kill(self) -> None:
        """End the JVM at once; its Python process ends with it."""
        process = self.process()
        if process is not None:
            with suppress(psutil.NoSuchProcess):
                process.kill()


def started_s(process: psutil.Process) -> float:
    """Return when a process was started, in seconds after boot: setting the clock changes the time of day, not this.

    Raises psutil.NoSuchProcess when it has ended.
    """
    return process.create_time() - psutil.boot_time()


def directory(settings: Settings) -> Path:
    """Return where the driver keeps its lock, its state and its temporary files."""
    return settings.home / "stream"


def lock_path(settings: Settings) -> Path:
    """Return the file that the one driver holds an exclusive `flock` on for as long as it can write."""
    return directory(settings) / "driver.lock"


def acquire(settings: Settings, *, wait_s: float) -> int:
    """Take the lock for this process and whatever it becomes by `exec`.

    Args:
        settings: the home.
        wait_s: how long to wait for another driver to end.

    Returns:
        The inheritable file descriptor that holds the lock: it lasts until the last process that has it ends.

    Raises:
        DriverLockedError: somebody else held the lock all that time.
    """
    path = lock_path(settings)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    deadline = time.monotonic() + wait_s
    while not _try_lock(descriptor, fcntl.LOCK_EX):
        holder = _read(settings)
        if holder and holder.is_orphan():
            # Where the kernel does not end a child with its parent, nobody else would ever end this one.
            holder.kill()
        if time.monotonic() > deadline:
            os.close(descriptor)
            raise DriverLockedError.held_by(holder, path, wait_s)
        time.sleep(POLL_INTERVAL_S)
    os.set_inheritable(descriptor, True)  # noqa: FBT003 - its signature
    return descriptor


def announce(settings: Settings, driver: Driver) -> None:
    """Write down who holds the lock; only its holder may."""
    temporary = _state_path(settings).with_suffix(".new")
    temporary.write_text(json.dumps(asdict(driver)))
    temporary.replace(_state_path(settings))


def running(settings: Settings) -> Driver | None:
    """Return the driver that holds the lock now, or None."""
    try:
        descriptor = os.open(lock_path(settings), os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return None if _try_lock(descriptor, fcntl.LOCK_SH) else _read(settings)
    finally:
        os.close(descriptor)


def stop(settings: Settings, *, timeout_s: float) -> bool:
    """End the driver in good order: SIGTERM to its Python process, which stops the queries.

    Returns:
        Whether it ended by itself. If not within `timeout_s`, its JVM is killed, which is safe but not graceful.
    """
    driver = running(settings)
    if driver is None:
        return True
    receiver = driver.python() or driver.process()
    if receiver is not None:
        with suppress(psutil.NoSuchProcess):
            receiver.send_signal(signal.SIGTERM)
    if _wait(settings, driver, time.monotonic() + timeout_s):
        return True
    driver.kill()
    return False


def _wait(settings: Settings, driver: Driver, deadline: float) -> bool:
    while time.monotonic() < deadline:
        if running(settings) != driver:
            return True
        time.sleep(POLL_INTERVAL_S)
    return False


def _state_path(settings: Settings) -> Path:
    return directory(settings) / "driver.json"


def _read(settings: Settings) -> Driver | None:
    try:
        return Driver(**json.loads(_state_path(settings).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _try_lock(descriptor: int, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
