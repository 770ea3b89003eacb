"""Runs that write the lake: which tables a run of the DAG `compaction` brings up to date, and which tasks a table waits for.

The tables are chosen once, before any of the run's tasks takes the pool's slot.
"""

import logging
from collections.abc import Iterable, Sequence

from include.airflow.client import AirflowApi, PoolTask
from include.airflow.names import ALL_TABLES, LAKE_POOL, TOPICS_TASK
from include.declarations.topic_tables import FOLDER, LakeCatalog
from include.errors import KafkaUnavailableError
from include.lake.pending_work import has_pending_work, has_records_to_append
from include.quality.verified_stores import confirm_if_nothing_is_new
from include.rebuild.stages.promotion import PROMOTE_LAKE
from include.settings import Settings

LOG = logging.getLogger(__name__)
SCHEDULED_RUN = "scheduled__"
BUSY = frozenset({"running", "queued"})
NEXT_COMPACTION = "the next compaction: no task is replacing the table (`./foldlake compact` starts one)"


def chosen_tables(
    settings: Settings, catalog: LakeCatalog, requested: str, *, is_scheduled: bool
) -> list[str]:
    """Return the names of the read models and event tables whose tasks are to run.

    A scheduled run leaves out the tables that are complete: a session of Spark would take seconds of processor time to find that out.

    requested: the name of a table, FOLDER for those of all topics, or ALL_TABLES.

    Raises KafkaUnavailableError.
    """
    names = [name for name in catalog.names if requested in {ALL_TABLES, name, _group(catalog, name)}]
    chosen = [name for name in names if not is_scheduled or _may_have_work(settings, catalog, name)]
    for name in names:
        if name not in chosen:
            LOG.info("lake/%s contains every event, and VACUUM is not due: skipped", name)
    return chosen


def earlier_scheduled_run(active: Sequence[str], run_id: str) -> str | None:
    """Return the id of a scheduled run that began before this one and has not ended; None if there is none.

    active: the ids of the runs that have not ended. A scheduled run's id begins with SCHEDULED_RUN, and its time follows.
    """
    return next(
        (other for other in sorted(active) if other.startswith(SCHEDULED_RUN) and other < run_id), None
    )


def tasks_of(catalog: LakeCatalog, names: Iterable[str]) -> list[str]:
    """Return the ids of the tasks that bring these tables up to date, each once."""
    return list(dict.fromkeys(_task_of(catalog, name) for name in names))


def _task_of(catalog: LakeCatalog, name: str) -> str:
    if name in catalog.of_topics:
        return TOPICS_TASK
    return f"compact_{name}" if name in catalog.models else f"append_{name}"


def _group(catalog: LakeCatalog, name: str) -> str:
    return FOLDER if name in catalog.of_topics else name


def _may_have_work(settings: Settings, catalog: LakeCatalog, name: str) -> bool:
    try:
        return _has_work(settings, catalog, name)
    except KafkaUnavailableError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a damaged table raises
        # One damaged table must not keep the others from being brought up to date: its own task fails, and says what is wrong.
        LOG.warning("cannot find out whether lake/%s is complete: %s", name, error)
        return True


def _has_work(settings: Settings, catalog: LakeCatalog, name: str) -> bool:
    if name not in catalog.models:
        return has_records_to_append(settings, catalog.event_tables[name])
    model = catalog.models[name]
    if has_pending_work(settings, model):
        return True
    # No check follows a run that is skipped: what was verified is still up to date.
    confirm_if_nothing_is_new(settings, model)
    return False


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
