"""Run one component of Airflow such that everything it forks dies with it: workers, task runners, parsers."""

import sys

from include.parent_death import forks_die_with_this_process


def main() -> None:
    """Run `airflow <arguments>` in this process."""
    forks_die_with_this_process()
    if sys.argv[1] == "scheduler":
        bury_predecessors()
    # Airflow reads its configuration when it is imported.
    from airflow.__main__ import main as airflow

    sys.argv[0] = "airflow"
    airflow()


def bury_predecessors() -> None:
    """Record that no other scheduler of this home lives, so that this one takes over their tasks at once.

    The embedded stack runs one scheduler, and its tasks die with it: when this one starts, no task of an earlier one is
    running. Airflow by itself would wait until the dead scheduler's last heartbeat is long past.
    """
    from airflow.jobs.job import Job, JobState
    from airflow.utils.session import create_session
    from sqlalchemy import update

    others = update(Job).where(Job.job_type == "SchedulerJob", Job.state == JobState.RUNNING)
    with create_session() as session:
        session.execute(others.values(state=JobState.FAILED))


if __name__ == "__main__":
    main()
