"""Runs of the DAG `rebuild` of a whole stack, as its tests follow them."""

from include.airflow.client import AirflowApi
from include.airflow.names import REBUILD_DAG
from include.settings import Settings
from include.versions.registry import VersionRegistry
from include.versions.version_record import ReadModelVersions
from tests.support.waiting import wait_until

MODEL = "balance"
TIMEOUT_S = 900.0
# Each poll costs Airflow tens of milliseconds on the two cores that its tasks need.
POLL_S = 1.0


def record(settings: Settings) -> ReadModelVersions:
    """Return the registry's record of the read model."""
    with VersionRegistry(settings.kafka_connection) as registry:
        return registry.read()[MODEL]


def states(api: AirflowApi, dag_id: str, run_id: str) -> dict[str, str | None]:
    """Return the states of a run's tasks."""
    return {task.task_id: task.state for task in api.tasks(dag_id, run_id)}


def wait_for(api: AirflowApi, dag_id: str, run_id: str, task_id: str, state: str) -> None:
    """Wait for a task's state; fail immediately if the run has failed."""

    def reached() -> bool:
        now = states(api, dag_id, run_id)
        assert now.get(task_id) == state or api.run_state(dag_id, run_id) != "failed", f"states: {now}"
        return now.get(task_id) == state

    wait_until(reached, f"{task_id} is {state}", TIMEOUT_S, POLL_S)


def task_log(api: AirflowApi, run_id: str, task_id: str) -> str:
    """Return the log of the first try of a task."""
    return "\n".join(api.task_log(REBUILD_DAG, run_id, task_id, 1))
