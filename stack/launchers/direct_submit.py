"""Runs a lake job, a quality check or the stream driver without Airflow, with the same launchers and settings.

Somebody waits for such a job: it has a normal priority.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from include.process import LAUNCHER
from include.quality.check import CheckRequest, job_arguments
from include.quality.check_engines import run_check_with_engines
from include.settings import CHECKOUT, Settings, settings_environment
from include.spark.lake_config import interpreter_variable, lake_job_command


def launch(
    settings: Settings, job: str, arguments: Sequence[str], log: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start `spark_jobs/<job>.py` and return its process, which becomes the JVM and ends with this process.

    log: the file to which its output is appended; None for the output of this process.
    """
    settings = settings.changed(lake_niceness=0)
    command = lake_job_command(settings, job, arguments)
    environment = {**os.environ, **settings_environment(settings), **interpreter_variable()}
    if log is None:
        return subprocess.Popen(command, cwd=CHECKOUT, env=environment)
    with log.open("ab") as output:
        return subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=output, stderr=output)


def run(settings: Settings, job: str, arguments: Sequence[str]) -> int:
    """Run `spark_jobs/<job>.py` and return its exit status."""
    return launch(settings, job, arguments).wait()


def run_check(settings: Settings, request: CheckRequest) -> int:
    """Run a quality check and return its exit status; its output goes to standard error."""
    return run_check_with_engines(
        settings.changed(lake_niceness=0),
        job_arguments(request),
        lambda arguments: run(settings, "quality_check", arguments),
        lambda line: sys.stderr.write(f"{line}\n"),
    )


def launch_driver(settings: Settings, log: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start the stream driver with these options of its launcher, and return its process, which becomes the JVM and ends with this process.

    log: the file to which its output is appended.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "stack.launchers.driver_submit", *options]
    environment = {**os.environ, **settings_environment(settings), LAUNCHER: str(os.getpid())}
    with log.open("ab") as output:
        return subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=output, stderr=output)
