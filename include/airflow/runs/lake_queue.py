"""What the lake's table of a read model waits for while it does not contain the live version yet."""

from include.airflow.client import AirflowApi, PoolTask
from include.airflow.names import LAKE_POOL
from include.rebuild.stages.promotion import PROMOTE_LAKE

BUSY = frozenset({"running", "queued"})
NEXT_COMPACTION = "the next compaction: no task is replacing the table (`./foldlake compact` starts one)"


def waits_for(api: AirflowApi, read_model: str) -> str:
    """Return a clause that says what replaces the table, and which task occupies the only slot before it.

    Raises AirflowUnavailableError.
    """
    tasks = api.pool_tasks(LAKE_POOL)
    own = next((task for task in tasks if _replaces(api, task, read_model)), None)
    if own is None:
        return NEXT_COMPACTION
    name = f"the task {own.task_id} of the run {own.run_id} of {own.dag_id}"
    before = [f"{task.task_id} of {task.dag_id}" for task in tasks if task != own and task.state in BUSY]
    if own.state in BUSY or not before:
        return f"{name}, which is {own.state}"
    return f"{name}, which waits for {', '.join(before)}"


def _replaces(api: AirflowApi, task: PoolTask, read_model: str) -> bool:
    """Return whether a task replaces the table of the read model."""
    if task.task_id == PROMOTE_LAKE.name:
        return api.run_conf(task.dag_id, task.run_id).get("read_model") == read_model
    return task.task_id in {f"{read_model}.{PROMOTE_LAKE.name}", f"compact_{read_model}"}
