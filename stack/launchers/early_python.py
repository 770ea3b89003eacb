"""Starts the Python process of a Spark application before its JVM, so that both load side by side.

Spark starts Python when the JVM is ready. Here it starts stack/launchers/early-python.sh instead, which passes the address of the JVM's gateway on
to the process that is waiting for it (spark_jobs/runtime/early_start.py), and ends when that process does.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from include.settings import CHECKOUT

# Variable with the folder in which the two processes meet.
FOLDER = "EARLY_PYTHON"
PROGRAM = CHECKOUT / "stack" / "launchers" / "early-python.sh"
APPLICATIONS = CHECKOUT / "spark_jobs"


def start_python(
    python: Path, arguments: Sequence[str], scratch: Path, environment: Mapping[str, str]
) -> dict[str, str]:
    """Start the Python process of an application, as a child of the JVM that this process becomes by `exec`.

    Args:
        python: the interpreter.
        arguments: those of spark-submit, with one of spark_jobs/*.py as the application.
        scratch: the folder for temporary files of the application.
        environment: that of spark-submit.

    Returns:
        The environment for the JVM. Without the program `flock`, which Linux has, nothing is started, and Spark starts Python.
    """
    index = next(i for i, one in enumerate(arguments) if Path(one).parent == APPLICATIONS)
    if shutil.which("flock") is None:
        return dict(environment)
    folder = scratch / "early-python"
    folder.mkdir(mode=0o700)
    # The Python process inherits the lock, and holds it until it ends, however it ends.
    alive = os.open(folder / "alive", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(alive, fcntl.LOCK_EX)
    module = f"spark_jobs.{Path(arguments[index]).stem}"
    subprocess.Popen(
        [
            python,
            "-m",
            "spark_jobs.runtime.early_start",
            str(os.getpid()),
            folder,
            module,
            *arguments[index + 1 :],
        ],
        env=dict(environment),
        pass_fds=(alive,),
    )
    os.close(alive)
    return {**environment, "PYSPARK_DRIVER_PYTHON": str(PROGRAM), FOLDER: str(folder)}
