"""Checks a store for damage in a child process: a damaged file can kill the process that reads it."""

import subprocess
import sys
from pathlib import Path

TIMEOUT_S = 600


def damage(path: Path) -> str | None:
    """Return what is wrong with the store at `path`, or None."""
    command = [sys.executable, "-m", "query_api.store.lmdb.read_check", str(path)]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"reading it took more than {TIMEOUT_S} s"
    if child.returncode == 0:
        return None
    return child.stderr.strip().rpartition("\n")[2] or f"reading it ended with status {child.returncode}"
