"""Folders for the temporary files of processes: those of a process that was killed are removed by the next one."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from include.files import FileLock

LOCK_SUFFIX = ".lock"


def scratch_dir(root: Path) -> Path:
    """Create and return this process's folder in `root`; remove the folders of processes that have ended.

    Each folder has a lock beside it, which the process and the programs that it executes hold: containers that share `root` do not
    see one another's process ids.
    """
    root.mkdir(parents=True, exist_ok=True)
    for path in root.iterdir():
        if path.is_dir():
            _remove_unused(path)
    own = root / f"{os.getpid()}-{secrets.token_hex(4)}"
    # First: another process may look for unused folders at any time.
    _lock_of(own).try_acquire()
    own.mkdir()
    return own


@contextmanager
def scratch_folder(root: Path) -> Iterator[Path]:
    """Use such a folder for a block of code, and remove it then."""
    folder = scratch_dir(root)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _lock_of(folder).path.unlink(missing_ok=True)


def _lock_of(folder: Path) -> FileLock:
    return FileLock(folder.with_name(folder.name + LOCK_SUFFIX), survives_exec=True)


def _remove_unused(folder: Path) -> None:
    """Remove the folder and its lock unless its process still runs."""
    if folder.name.isdigit() and psutil.pid_exists(int(folder.name)):
        return  # of the release before locks, whose driver runs on during an upgrade
    lock = _lock_of(folder)
    if lock.try_acquire():
        shutil.rmtree(folder, ignore_errors=True)
        lock.path.unlink(missing_ok=True)
        lock.release()
