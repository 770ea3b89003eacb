"""The folder for the records that a check reads from the nodes; it exists until the check ends."""

import os
import tempfile
import time
from pathlib import Path


def spool_dir() -> Path:
    """Return a new path for this check in the scratch directory that its job was launched with; the folder is not created.

    If a job is killed, the next one removes that directory (stack.launchers.scratch.scratch_dir).
    """
    scratch = os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir()
    return Path(scratch) / f"quality-spool-{time.time_ns()}"
