"""The command that runs one of the lake's jobs without Airflow, in the home's job server or in a process of its own."""

import sys
from collections.abc import Sequence

from include.settings import CHECKOUT, Settings
from include.spark.lake_config import lake_config

# Its process needs the settings as variables, and this one.
PYTHON_VARIABLE = "FOLDLAKE_PYTHON"


def lake_job_command(settings: Settings, job: str, arguments: Sequence[str]) -> list[str]:
    """Return the command for `spark_jobs/<job>.py`, which ends with the thread that starts it; run it in CHECKOUT."""
    return [
        str(CHECKOUT / "stack" / "bin" / "spark-submit-lake"),
        *("--master", settings.lake.master),
        *(f"--conf={name}={value}" for name, value in lake_config(settings.lake).items()),
        str(CHECKOUT / "spark_jobs" / f"{job}.py"),
        *arguments,
    ]


def interpreter_variable() -> dict[str, str]:
    """Return the variable by which the command finds this process's interpreter."""
    return {PYTHON_VARIABLE: sys.executable}
