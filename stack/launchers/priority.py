"""A process that leaves the processor to whoever else wants it."""

import os
import sys
from pathlib import Path

# sched(7), "The autogroup feature": where it is on, a nice value counts among the processes of one session only.
AUTOGROUP = Path("/proc/self/autogroup")


def lower_priority(niceness: int) -> None:
    """Give this process, and what it starts from now on, that nice value (0 to 19) against all others of the machine.

    It leads a session of its own afterwards, unless it leads a process group already.
    """
    if niceness == 0:
        return
    os.nice(niceness)
    if sys.platform == "linux" and _leads_own_session():
        try:
            AUTOGROUP.write_text(str(niceness))
        except OSError:
            # Without the feature there is no such file, or it says nothing: then the nice value is enough.
            return


def _leads_own_session() -> bool:
    try:
        os.setsid()
    except PermissionError:
        return os.getsid(0) == os.getpid()
    return True
