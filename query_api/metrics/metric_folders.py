"""The folders with the counters of a node's HTTP servers, in memory where the system has a file system for that.

The workers map the counters' files, and the kernel kills a process that touches a new page of a mapped file on a full disk. Each server
has a folder of its own, named after its role and process: two run while one replaces the other.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil

from query_api.listener import Role
from query_api.memory_folder import memory_folder, memory_folders

PURPOSE = "metrics"


def create_folder(store_dir: Path, role: Role, pid: int) -> Path:
    """Return a new folder for a server; removes those of servers that have ended."""
    own = memory_folder(store_dir, PURPOSE) / f"{role}-{pid}"
    for parent in memory_folders(store_dir, PURPOSE):
        for left_over in parent.glob("*"):
            other = _pid_of(left_over)
            if other is not None and other != pid and psutil.pid_exists(other):
                continue
            if left_over.is_dir():
                shutil.rmtree(left_over, ignore_errors=True)
            else:  # of an earlier release
                left_over.unlink(missing_ok=True)
    own.mkdir(mode=0o700, parents=True)
    return own


def folders_of_node(own: Path) -> list[Path]:
    """Return the folders whose counters a server shows: its own, and for that of callers also the one of the listener for nodes and jobs."""
    if not own.name.startswith(f"{Role.CALLERS}-"):
        return [own]
    # While one server replaces another one, only the newer one counts: its counters begin at 0, as after any restart.
    others = sorted(_started(own.parent.glob(f"{Role.PEERS}-*")))
    return [own, *(folder for _, folder in others[-1:])]


def _started(folders: Iterator[Path]) -> Iterator[tuple[float, Path]]:
    for folder in folders:
        try:
            yield psutil.Process(_pid_of(folder)).create_time(), folder
        except psutil.Error:
            continue


def _pid_of(folder: Path) -> int | None:
    digits = folder.name.rpartition("-")[2]
    return int(digits) if digits.isdigit() else None
