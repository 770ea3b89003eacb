"""Runs a lake job or the stream driver without Airflow, with the same launchers and settings."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from include.settings import CHECKOUT, Settings, settings_environment
from include.spark.lake_config import interpreter_variable, lake_job_command
from stack.launchers.spark_submit import LAUNCHER


def launch(
    settings: Settings, job: str, arguments: Sequence[str], log: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start `spark_jobs/<job>.py` and return its process, which becomes the JVM and ends with this process.

    log: the file to which its output is appended; None for the output of this process.
    """
    command = lake_job_command(settings, job, arguments)
    environment = {**os.environ, **settings_environment(settings), **interpreter_variable()}
    if log is None:
        return subprocess.Popen(command, cwd=CHECKOUT, env=environment)
    with log.open("ab") as output:
        return subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=output, stderr=output)


def run(settings: Settings, job: str, arguments: Sequence[str]) -> int:
    """Run `spark_jobs/<job>.py` and return its exit status."""
    return launch(settings, job, arguments).wait()


def launch_driver(settings: Settings, log: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start the stream driver with these options of its launcher, and return its process, which becomes the JVM and ends with this process.

    log: the file to which its output is appended.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "stack.launchers.driver_submit", *options]
    environment = {**os.environ, **settings_environment(settings), LAUNCHER: str(os.getpid())}
    with log.open("ab") as output:
        return subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=output, stderr=output)
