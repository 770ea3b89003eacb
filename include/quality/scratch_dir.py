"""Where a check keeps what it reads of the nodes until it is over."""

import os
import tempfile
import time
from pathlib import Path


def spool_folder() -> Path:
    """Return a folder of this check's own, not made yet, in the scratch directory that the job was launched with.

    Of a job that is killed, the next one removes that directory (stack.launchers.batch_submit.scratch_dir).
    """
    scratch = os.environ.get("SPARK_LOCAL_DIRS") or tempfile.gettempdir()
    return Path(scratch) / f"quality-spool-{time.time_ns()}"
