"""Controls this process: it ends when its parent ends, so that a killed supervisor leaves no orphan that writes; it lowers its priority.

Standard library only.
"""

import ctypes
import os
import select
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

# prctl(2): deliver this signal to the caller when the thread that created it ends. Kept over execve, cleared by fork.
PR_SET_PDEATHSIG = 1
# Those with the descriptors of two pipes that a launcher passes to a process which may replace another one. What the process writes to the
# first says that it is ready. The end of the second says that it is replaced. The launcher is a program without packages, so it has these
# names as well: stack/supervision/socket_holder.py.
READY_PIPE = "STACK_READY_PIPE"
DRAIN_PIPE = "STACK_DRAIN_PIPE"
# That with the path of the file that describes the process: stack/supervision/exec_process.py.
DESCRIPTION = "STACK_DESCRIPTION"
# How often the parent is checked where prctl does not exist.
POLL_INTERVAL_S = 0.5
# The environment variable with the id of the process that launched this one.
LAUNCHER = "FOLDLAKE_LAUNCHER_PID"
# sched(7), "The autogroup feature": where it is enabled, a nice value is compared within one session only.
AUTOGROUP = Path("/proc/self/autogroup")
LOWEST_PRIORITY = 19


def die_with_parent(parent_pid: int | None = None) -> None:
    """Have this process killed with SIGKILL as soon as its parent ends.

    On Linux the kernel does this, even after an `exec`. On other systems a thread polls the parent, but an `exec` ends it.

    Args:
        parent_pid: the expected parent, by default the current one. When it has already ended, this process ends at
            once.
    """
    expected = os.getppid() if parent_pid is None else parent_pid
    if sys.platform == "linux":
        if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL)) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    else:
        threading.Thread(target=_watch, args=(expected,), name="parent-death", daemon=True).start()
    # The parent may have ended before the call above took effect, which sends no signal.
    if os.getppid() != expected:
        os.kill(os.getpid(), signal.SIGKILL)


def launcher_pid() -> int:
    """Return the id of the launcher, the parent that this process must not outlive.

    Given by the launcher itself: if it is killed while Python starts, its id is no longer the parent's.
    """
    return int(os.environ.pop(LAUNCHER, os.getppid()))


def is_held() -> bool:
    """Whether a holder has started this process, which may replace another one. It then ends with the holder."""
    if READY_PIPE not in os.environ:
        return False
    die_with_parent(launcher_pid())
    return True


def report_ready() -> None:
    """Report to the launcher that this process is ready to replace another one."""
    os.write(int(os.environ[READY_PIPE]), b"ready\n")


def is_replaced() -> bool:
    """Whether another process is ready, and waits for the end of this one."""
    pipe = os.environ.get(DRAIN_PIPE)
    return pipe is not None and bool(select.select([int(pipe)], [], [], 0)[0])


def forks_die_with_this_process() -> None:
    """Make every process that this one forks from now on, and their children, end with their parents."""
    forking_pid = [os.getpid()]

    def remember_parent() -> None:
        forking_pid[0] = os.getpid()

    def bind_child() -> None:
        die_with_parent(forking_pid[0])

    os.register_at_fork(before=remember_parent, after_in_child=bind_child)


def _watch(parent_pid: int) -> None:
    while os.getppid() == parent_pid:
        time.sleep(POLL_INTERVAL_S)
    os.kill(os.getpid(), signal.SIGKILL)


def lower_priority(niceness: int) -> None:
    """Set the nice value (0 to 19) of this process and its future children, relative to all processes on the machine.

    Afterwards this process leads its own session, unless it already led a process group.
    """
    if niceness == 0:
        return
    os.nice(niceness)
    if sys.platform == "linux" and _leads_own_session():
        try:
            AUTOGROUP.write_text(str(niceness))
        except OSError:
            # Without the feature, the file does not exist or is not writable, and the nice value is sufficient.
            return


def lower_threads(pid: int, name: str, niceness: int) -> int:
    """Set the nice value, unless it is higher, of those threads of a process whose names begin with `name`; return their number. Linux only."""
    lowered = 0
    for thread in Path(f"/proc/{pid}/task").glob("[0-9]*"):
        # A thread may end at any time.
        with suppress(OSError):
            if (thread / "comm").read_text(encoding="utf-8").startswith(name):
                present = os.getpriority(os.PRIO_PROCESS, int(thread.name))
                os.setpriority(os.PRIO_PROCESS, int(thread.name), max(present, niceness))
                lowered += 1
    return lowered


class GroupPriority:
    """The priority of all processes of this process group, which changes with what they do.

    base: the nice value to which other nice values are relative.
    """

    def __init__(self, base: int) -> None:
        self._base = base

    def change(self, niceness: int) -> bool:
        """Set the nice value; return whether work that needs it can be done.

        Most users may not raise a priority again. While a core is idle, that does not matter.
        """
        wanted = min(self._base + niceness, LOWEST_PRIORITY)
        if wanted == os.getpriority(os.PRIO_PROCESS, 0):
            return True
        if sys.platform == "linux" and os.getsid(0) == os.getpgrp():
            # Unlike the nice value of a process, every user may lower that of a session.
            with suppress(OSError):
                AUTOGROUP.write_text(str(niceness))
        try:
            os.setpriority(os.PRIO_PGRP, 0, wanted)
        except PermissionError:
            return os.getloadavg()[0] < (os.cpu_count() or 1)
        return True


def _leads_own_session() -> bool:
    try:
        os.setsid()
    except PermissionError:
        return os.getsid(0) == os.getpid()
    return True
