"""Runs one component of Airflow, so that all processes that it forks (workers, task runners, parsers) end with it."""

import importlib
import os
import sys
from datetime import UTC, datetime

from include.airflow.names import POOLS, REBUILD_POOL, SCHEDULER_STARTED
from include.boot_clock import boot_s
from include.machine import cores, memory_bytes
from include.process import forks_die_with_this_process
from include.settings import WRITTEN_SETTINGS
from include.stream.driver_configuration import SETTING_NAMES
from stack.supervision.configuration import SECRET_VARIABLES

# Component -> its type in Airflow's table of jobs.
JOB_TYPES = {"scheduler": "SchedulerJob", "triggerer": "TriggererJob"}
PARALLEL_REBUILD_CORES, PARALLEL_REBUILD_BYTES = 4, 8 * 1024**3


def main() -> None:
    """Run `airflow <arguments>` in this process."""
    forks_die_with_this_process()
    if WRITTEN_SETTINGS in os.environ:
        forget_settings()
    if sys.argv[1] in JOB_TYPES:
        end_dead_jobs(JOB_TYPES[sys.argv[1]])
    if sys.argv[1] == "scheduler":
        os.environ[SCHEDULER_STARTED] = str(boot_s())
        create_pools()
    # Airflow reads its configuration at import.
    airflow = importlib.import_module("airflow.__main__").main

    sys.argv[0] = "airflow"
    airflow()


def forget_settings() -> None:
    """Forget the settings with which supervisord was started: they would take precedence over the written ones.

    Secrets are not written: they are those of this process.
    """
    for name in SETTING_NAMES - SECRET_VARIABLES:
        os.environ.pop(name, None)


def end_dead_jobs(job_type: str) -> None:
    """Mark earlier schedulers or triggerers of this machine as failed, so that this one adopts their tasks or triggers immediately.

    The embedded stack runs one of each, and a scheduler's tasks end with it: when this one starts, nothing of an earlier one is
    running. Airflow itself would first wait for the heartbeat timeout.
    """
    from airflow.jobs.job import Job, JobState  # noqa: PLC0415 - see above
    from airflow.utils.net import get_hostname  # noqa: PLC0415
    from airflow.utils.session import create_session  # noqa: PLC0415
    from sqlalchemy import update  # noqa: PLC0415

    with create_session() as session:
        session.execute(
            update(Job)
            .where(
                Job.job_type == job_type,
                Job.state == JobState.RUNNING,
                Job.hostname == get_hostname(),  # type: ignore[no-untyped-call]
            )
            .values(state=JobState.FAILED, end_date=datetime.now(UTC))
        )


def create_pools() -> None:
    """Create the DAGs' missing pools; existing pools keep an operator's changes."""
    from airflow.models.pool import Pool  # noqa: PLC0415 - see above

    known = {pool.pool for pool in Pool.get_pools()}
    for name, (slots, purpose) in pools(cores(), memory_bytes()).items():
        if name not in known:
            Pool.create_or_update_pool(name, slots, purpose, include_deferred=False)


def pools(cores: int, memory_bytes: int) -> dict[str, tuple[int, str]]:
    """Return the pools of a machine: name -> (slots, description).

    A rebuild's catch-up and staging run side by side where both have cores of their own beside the stream, and 1 GiB and 2 GiB.
    """
    slots, purpose = POOLS[REBUILD_POOL]
    fits = cores >= PARALLEL_REBUILD_CORES and memory_bytes >= PARALLEL_REBUILD_BYTES
    return {**POOLS, REBUILD_POOL: (slots if fits else 1, purpose)}


if __name__ == "__main__":
    main()
