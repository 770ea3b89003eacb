"""Runs a check or a comparison: the program that does it with DuckDB, and Spark's job if that hands it on."""

import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence

from include.process import LAUNCHER
from include.quality.check_run import (
    FAILED,
    HANDED_TO_SPARK,
    NEEDS_SPARK,
    NO_VERDICT,
    PASSED,
    UNCHECKABLE,
    SparkReason,
)
from include.settings import CHECKOUT, CheckEngine, Settings, settings_environment

LOG = logging.getLogger(__name__)
# The modules are above this one: they run in processes of their own.
PROGRAM = ("-m", "include.replay.quality_check")
COMPARISON = ("-m", "include.replay.compare_versions")
VERDICTS = (PASSED, FAILED, UNCHECKABLE, NO_VERDICT)


def run_check_with_engines(
    settings: Settings,
    arguments: Sequence[str],
    spark_job: Callable[[list[str]], int],
    log: Callable[[str], object],
    program: Sequence[str] = (),
) -> int:
    """Run a check with the engines that FOLDLAKE_CHECK_ENGINE allows, and return its exit status, of include/quality/check_run.py.

    The program ends with the thread that calls this, and is killed when an exception ends the call.

    Args:
        settings: those of the check.
        arguments: its command line (`job_arguments`).
        spark_job: runs Spark's job with the arguments given to it, and returns its exit status.
        log: gets each line of the program's output, without its end.
        program: the program's arguments for Python; by default, those of a check.
    """
    status, further = _run_program(settings, [*(program or PROGRAM), *arguments], log)
    if status in VERDICTS:
        return status
    if status != NEEDS_SPARK:
        # Killed for lack of memory, for example: Spark's job has a limit of its own.
        reason = f"the check with DuckDB ended with status {status}"
        LOG.warning("%s", reason)
        if settings.quality.engine is CheckEngine.DUCKDB:
            return NO_VERDICT
        further = SparkReason.of(reason).arguments()
    return spark_job([*arguments, *further])


def _run_program(
    settings: Settings, command: Sequence[str], log: Callable[[str], object]
) -> tuple[int, list[str]]:
    """Return the exit status of the program, and the further arguments of Spark's job if that must check."""
    further: list[str] = []
    environment = {**os.environ, **settings_environment(settings), LAUNCHER: str(os.getpid())}
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=CHECKOUT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    with process:
        try:
            assert process.stdout is not None  # noqa: S101 - a pipe
            for text in process.stdout:
                line = text.rstrip("\n")
                if line.startswith(HANDED_TO_SPARK):
                    further = shlex.split(line.removeprefix(HANDED_TO_SPARK))
                else:
                    log(line)
            return process.wait(), further
        except BaseException:
            process.kill()
            raise
