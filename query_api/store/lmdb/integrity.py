"""Checks a store for damage in a child process: a damaged file can kill the process that reads it."""

import signal
import subprocess
import sys
from pathlib import Path

from query_api.errors import StoreWriteError
from query_api.store.lmdb.read_check import DAMAGED

TIMEOUT_S = 600
# What the kernel does to a process that reads a damaged file. Any other signal comes from outside: from an operator, or because
# the machine is out of memory.
FATAL_TO_READERS = frozenset({signal.SIGBUS, signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGILL})


def damage(path: Path) -> str | None:
    """Return what is wrong with the store at `path`, or None; raises StoreWriteError when it cannot be checked now."""
    command = [sys.executable, "-m", "query_api.store.lmdb.read_check", str(path)]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"reading it took more than {TIMEOUT_S} s"
    except OSError as error:
        raise StoreWriteError.at(path, f"its check cannot be started: {error}") from error
    if child.returncode == 0:
        return None
    finding = child.stderr.strip().rpartition("\n")[2] or f"reading it ended with status {child.returncode}"
    if child.returncode == DAMAGED or -child.returncode in FATAL_TO_READERS:
        return finding
    raise StoreWriteError.at(path, f"its check failed: {finding}")
