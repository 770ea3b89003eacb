"""The clock that all processes of one machine share until it restarts; setting the wall clock does not change it.

An age is measured with this clock. Unix time is what an age is shown as: in a header, a log, a report.
"""

import time
from functools import cache
from pathlib import Path
from typing import NamedTuple, Self

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
UNKNOWN_BOOT = "unknown"

if hasattr(time, "CLOCK_BOOTTIME"):

    def boot_s() -> float:
        """Return the seconds since the machine started, including those in which it was suspended."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

else:

    def boot_s() -> float:
        """Return the seconds of the system's monotonic clock, which all processes share on macOS."""
        return time.monotonic()


def boot_id() -> str:
    """Return the id of the machine's current boot; readings of `boot_s` can be compared if they are of the same boot."""
    return _read_boot_id(BOOT_ID)


@cache  # no process outlives a boot
def _read_boot_id(path: Path) -> str:
    try:
        return path.read_text().strip() or UNKNOWN_BOOT
    except OSError:
        return UNKNOWN_BOOT


class Moment(NamedTuple):
    """A moment of the current boot. Moments are ordered as they happened, whatever the wall clock showed.

    boot_s: the reading of the boot clock. unix_s: Unix time in seconds that the wall clock showed, for display only.
    """

    boot_s: float
    unix_s: float

    @classmethod
    def now(cls) -> Self:
        """Return the current moment."""
        return cls(boot_s(), time.time())

    @classmethod
    def of_unix(cls, unix_s: float) -> Self:
        """Return the moment that only the wall clock has measured."""
        return cls(boot_s() - (time.time() - unix_s), unix_s)

    def age_s(self) -> float:
        """Return the seconds since this moment."""
        return boot_s() - self.boot_s


# Before every other moment.
NEVER = Moment(float("-inf"), 0.0)


def age_s(unix_s: float, at_boot_s: float | None) -> float:
    """Return the seconds since a moment of the current boot; `at_boot_s` is None if only the wall clock has measured it."""
    return time.time() - unix_s if at_boot_s is None else boot_s() - at_boot_s
