"""Runs a lake job without Airflow, with the same wrapper and settings: for the command line and benchmarks."""

import os
import subprocess
import sys
from collections.abc import Sequence

from include.settings import CHECKOUT, Settings
from include.spark.lake_config import lake_config
from stack.settings_environment import settings_environment


def launch(settings: Settings, job: str, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start `spark_jobs/<job>.py` and return its process, which becomes the JVM and ends with this process."""
    command = [
        str(CHECKOUT / "stack" / "bin" / "spark-submit-lake"),
        *("--master", settings.lake.master),
        *(f"--conf={name}={value}" for name, value in lake_config(settings.lake).items()),
        str(CHECKOUT / "spark_jobs" / f"{job}.py"),
        *arguments,
    ]
    environment = {**os.environ, **settings_environment(settings), "FOLDLAKE_PYTHON": sys.executable}
    return subprocess.Popen(command, cwd=CHECKOUT, env=environment)


def run(settings: Settings, job: str, arguments: Sequence[str]) -> int:
    """Run `spark_jobs/<job>.py` and return its exit status."""
    return launch(settings, job, arguments).wait()
