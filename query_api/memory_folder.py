"""Folders of a node in memory, for small files that its processes share: counters, the last hour's samples, what the status page shows."""

import hashlib
import os
import stat
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the folders have a private mode


def memory_folder(store_dir: Path, purpose: str) -> Path:
    """Return the folder of a node for a purpose, and create it if necessary.

    It is in memory where the system has a file system for that, else, or if another user has taken its name, in the node's directory.
    """
    in_memory = _path(store_dir, purpose)
    try:
        in_memory.mkdir(mode=0o700)
    except FileExistsError:
        if is_private(in_memory):
            return in_memory
    except OSError:
        pass
    else:
        return in_memory
    on_disk = store_dir / purpose
    on_disk.mkdir(parents=True, exist_ok=True)
    return on_disk


def memory_folders(store_dir: Path, purpose: str) -> tuple[Path, ...]:
    """Return where the folder can be that another process of the node has created."""
    in_memory = _path(store_dir, purpose)
    return (in_memory, store_dir / purpose) if is_private(in_memory) else (store_dir / purpose,)


def is_private(folder: Path) -> bool:
    """Whether a folder exists, and belongs to this user alone."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _path(store_dir: Path, purpose: str) -> Path:
    node = hashlib.sha256(str(store_dir).encode()).hexdigest()[:16]
    return SHARED_MEMORY / f"foldlake-{os.getuid()}-{node}-{purpose}"
