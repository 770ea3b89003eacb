"""A wall clock that a test sets, for the processes that are started with it: libfaketime, where it is installed."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

LIBRARY = "libfaketimeMT.so.1"
LIBRARY_DIRECTORIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib")
WAIT_LIBRARY = "libwait.so"
# libfaketime 0.9.10 lets clock_nanosleep(2) fail for an absolute time, which `time.sleep` uses.
SITE_CUSTOMIZATION = """
import threading
import time
time.sleep = lambda seconds: threading.Event().wait(seconds) and None
"""
# libfaketime 0.9.10 does not know the C11 function with which librdkafka waits until a time of the wall clock.
WAIT_SOURCE = """
#include <errno.h>
#include <pthread.h>
#include <threads.h>
#include <time.h>
int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until) {
    int result = pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until);
    return result == 0 ? thrd_success : result == ETIMEDOUT ? thrd_timedout : thrd_error;
}
"""
# The processes read the offset again after this time.
CACHE_S = 1


@dataclass(frozen=True)
class WallClock:
    """The wall clock of every process that is started with `environment`; only monotonic clocks of these show the real time."""

    directory: Path
    library: Path

    @property
    def _offset(self) -> Path:
        return self.directory / "offset"

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of the processes."""
        return {
            "LD_PRELOAD": f"{self.directory / WAIT_LIBRARY} {self.library}",
            "FAKETIME_TIMESTAMP_FILE": str(self._offset),
            "FAKETIME_CACHE_DURATION": str(CACHE_S),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }

    @property
    def python_path(self) -> Path:
        """A directory that the processes' PYTHONPATH begins with."""
        return self.directory

    def set_to(self, offset: str) -> None:
        """Set the clock; `offset` is the difference from the real time, such as `-1h` or `+1d`."""
        new = self.directory / "new"
        new.write_text(f"{offset}\n")
        new.replace(self._offset)


def wall_clock(directory: Path) -> WallClock:
    """Return a clock that shows the real time, with its files in an empty directory.

    Skips the test where libfaketime or a C compiler is missing.
    """
    libraries = [path for root in LIBRARY_DIRECTORIES for path in _found_below(Path(root))]
    if not libraries:
        pytest.skip(f"{LIBRARY} is not installed (Debian: libfaketime)")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (Debian: gcc)")
    source = directory / "wait.c"
    source.write_text(WAIT_SOURCE)
    command = [compiler, "-shared", "-fPIC", "-o", str(directory / WAIT_LIBRARY), str(source), "-lpthread"]
    subprocess.run(command, check=True)
    (directory / "sitecustomize.py").write_text(SITE_CUSTOMIZATION)
    clock = WallClock(directory, libraries[0])
    clock.set_to("+0")
    return clock


def _found_below(root: Path) -> list[Path]:
    """Return the library below a library directory, also in the directory of an architecture."""
    found = [*root.glob(f"faketime/{LIBRARY}"), *root.glob(f"*/faketime/{LIBRARY}")]
    command = shutil.which("faketime")
    if command is not None:
        found += Path(command).parent.parent.glob(f"lib*/**/faketime/{LIBRARY}")
    return found
