"""Runs one component of Airflow, so that all processes that it forks (workers, task runners, parsers) end with it."""

import importlib
import sys

from include.airflow.names import POOLS
from include.parent_death import forks_die_with_this_process


def main() -> None:
    """Run `airflow <arguments>` in this process."""
    forks_die_with_this_process()
    if sys.argv[1] == "scheduler":
        fail_dead_schedulers()
        create_pools()
    # Airflow reads its configuration at import.
    airflow = importlib.import_module("airflow.__main__").main

    sys.argv[0] = "airflow"
    airflow()


def fail_dead_schedulers() -> None:
    """Mark earlier schedulers of this machine as failed, so that this one adopts their tasks immediately.

    The embedded stack runs one scheduler, and its tasks end with it: when this one starts, no task of an earlier one is
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
                Job.job_type == "SchedulerJob",
                Job.state == JobState.RUNNING,
                Job.hostname == get_hostname(),  # type: ignore[no-untyped-call]
            )
            .values(state=JobState.FAILED)
        )


def create_pools() -> None:
    """Create the DAGs' missing pools; existing pools keep an operator's changes."""
    from airflow.models.pool import Pool  # noqa: PLC0415 - see above

    known = {pool.pool for pool in Pool.get_pools()}
    for name, (slots, purpose) in POOLS.items():
        if name not in known:
            Pool.create_or_update_pool(name, slots, purpose, include_deferred=False)


if __name__ == "__main__":
    main()
