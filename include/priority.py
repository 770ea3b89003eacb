"""Lower scheduling priority for batch jobs and background work. Standard library only."""

import os
import sys
from pathlib import Path

# sched(7), "The autogroup feature": where it is enabled, a nice value is compared within one session only.
AUTOGROUP = Path("/proc/self/autogroup")


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


def _leads_own_session() -> bool:
    try:
        os.setsid()
    except PermissionError:
        return os.getsid(0) == os.getpid()
    return True
