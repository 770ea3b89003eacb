"""Folders for the temporary files of Spark applications, one for each process, which nobody needs after it has ended."""

import os
import shutil
from pathlib import Path

import psutil


def scratch_dir(root: Path) -> Path:
    """Create and return this process's folder in `root`; remove the folders of processes that have ended."""
    root.mkdir(parents=True, exist_ok=True)
    for path in root.iterdir():
        if path.name.isdigit() and not psutil.pid_exists(int(path.name)):
            shutil.rmtree(path, ignore_errors=True)
    own = root / str(os.getpid())
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir()
    return own
