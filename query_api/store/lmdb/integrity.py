"""Checks a store for damage in a child process: a damaged file can kill the process that reads it."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from query_api.errors import StoreWriteError
from query_api.store.checks import CheckExtent

# The exit status of read_check.py for a damaged store.
DAMAGED = 3
# What the kernel does to a process that reads a damaged file. Any other signal comes from outside: from an operator, or because
# the machine is out of memory.
FATAL_TO_READERS = frozenset({signal.SIGBUS, signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGILL})


class ReadCheck:
    """A child process that reads the store at `path`; see StoreCheck. It may take any time: slowness is not damage."""

    def __init__(self, path: Path, extent: CheckExtent) -> None:
        self._path = path
        # Each line is either the progress or, as the last one, the finding.
        self._last_line = ""
        command = [
            sys.executable,
            "-m",
            "query_api.store.lmdb.read_check",
            str(path),
            extent,
            str(os.getpid()),
        ]
        try:
            self._child = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
            )
        except OSError as error:
            raise StoreWriteError.at(path, f"its check cannot be started: {error}") from error
        self._output = threading.Thread(target=self._read_output, name=f"check of {path.name}", daemon=True)
        self._output.start()

    def _read_output(self) -> None:
        with self._child as child:
            for line in child.stdout or ():
                self._last_line = line.strip() or self._last_line

    @property
    def progress(self) -> str:
        """How many records were read."""
        return self._last_line

    def wait(self, timeout_s: float) -> bool:
        """Wait until the check is over, and return whether it is."""
        self._output.join(timeout_s)
        return not self._output.is_alive()

    def finding(self) -> str | None:
        """Return what is wrong with the store, or None; raises StoreWriteError when it could not be checked."""
        self._output.join()
        status = self._child.returncode
        if status == 0:
            return None
        if status == DAMAGED:
            return self._last_line
        ended = f"reading it ended with status {status}" + (
            f" after {self._last_line}" if self._last_line else ""
        )
        if -status in FATAL_TO_READERS:
            return ended
        raise StoreWriteError.at(self._path, f"its check failed: {ended}")

    def stop(self) -> None:
        """End the child process."""
        self._child.kill()
        self._output.join()
