"""Automatic runs and requested ones: when they start, which comes first, and the listener that cleans up after a rebuild ended by hand.

Ending a run stops its tasks, and skips those that have not started, `abandon` among them. A run of the DAG `retirement` abandons the
version instead. Without the listener, that would wait for the DAG's next scheduled run.
"""

import logging
import os
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.listeners import hookimpl
from airflow.task.priority_strategy import PriorityWeightStrategy

from include.boot_clock import boot_s

# How Airflow names the runs that a schedule or an asset has started.
AUTOMATIC_RUNS = ("scheduled__", "asset_triggered__")
REQUESTED = 1_000
LOG = logging.getLogger(__name__)
# What Airflow's API server says of a run that was ended in the web page or over REST; a scheduler says something else.
MANUALLY = "manually"


def is_requested(run_id: str) -> bool:
    """Return whether somebody has started a run: in the web page, over REST or from the command line."""
    return not run_id.startswith(AUTOMATIC_RUNS)


def postpone_after_start(run_id: str, delay_s: float) -> None:
    """Raise AirflowRescheduleException in a task of an automatic run until Airflow has run for a while: meanwhile it holds no slot.

    After `up`, the stream and the nodes use the machine first.
    """
    from airflow.sdk.exceptions import AirflowRescheduleException  # noqa: PLC0415 - as below

    from include.airflow.names import SCHEDULER_STARTED  # noqa: PLC0415 - as below

    left_s = float(os.environ.get(SCHEDULER_STARTED, "-inf")) + delay_s - boot_s()
    if left_s > 0 and not is_requested(run_id):
        LOG.info("Airflow has just started: this begins in %.0f s (FOLDLAKE_AIRFLOW_START_DELAY_S)", left_s)
        raise AirflowRescheduleException(datetime.now(UTC) + timedelta(seconds=left_s))  # type: ignore[no-untyped-call]  # of Airflow


class RequestedFirst(PriorityWeightStrategy):
    """Tasks of runs that were started by hand, from the command line or over REST start before those of periodic runs."""

    def get_weight(self, ti: Any) -> int:  # noqa: ANN401 - Airflow's task instance
        """Return the weight: the waiting task with the largest one starts first."""
        weight = int(ti.task.priority_weight)
        return max(weight, 1) * REQUESTED if is_requested(str(ti.run_id)) else weight


@hookimpl
def on_dag_run_failed(dag_run: Any, msg: str) -> None:  # noqa: ANN401 - Airflow's
    """Clean up after a run that was marked as failed."""
    _clean_up_after(dag_run.dag_id, dag_run.run_id, msg)


@hookimpl
def on_dag_run_success(dag_run: Any, msg: str) -> None:  # noqa: ANN401 - Airflow's
    """Clean up after a run that was marked as successful."""
    _clean_up_after(dag_run.dag_id, dag_run.run_id, msg)


def _clean_up_after(dag_id: str, run_id: str, msg: str) -> None:
    from include.airflow.names import is_rebuild  # noqa: PLC0415 - every component of Airflow loads this file

    if MANUALLY in msg and is_rebuild(dag_id):
        # The API server is serving the request that ends the run, and would have to answer another one.
        threading.Thread(target=_request_clean_up, args=(run_id,), daemon=True).start()


def _request_clean_up(run_id: str) -> None:
    from include.airflow.client import airflow_api  # noqa: PLC0415
    from include.airflow.names import RETIREMENT_DAG  # noqa: PLC0415
    from include.errors import FoldlakeError  # noqa: PLC0415
    from include.settings import Settings  # noqa: PLC0415

    settings = Settings()
    try:
        airflow_api(settings.home, settings.airflow).trigger(
            RETIREMENT_DAG, note=f"cleans up after the run {run_id}"
        )
    except (FoldlakeError, OSError, ValueError, KeyError) as error:
        LOG.warning("the version of run %s is abandoned within 15 minutes: %s", run_id, error)
