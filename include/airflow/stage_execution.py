"""Executes a stage's action within an Airflow task: what the action gets of the run, and what becomes of its errors."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from include.airflow.client import AirflowUnavailableError
from include.airflow.login import airflow_api
from include.errors import FoldlakeError, KafkaUnavailableError, RegistryUnavailableError
from include.rebuild.errors import CleanUpIncompleteError, NothingToDoError, StageTimeoutError
from include.rebuild.stage import StageRun
from include.settings import Settings
from include.versions.version_lock import VersionLockedError

LOG = logging.getLogger(__name__)
# By the next try a server may be up again, and a lock free. Any other error of Foldlake's would be raised again.
RETRYABLE_ERRORS = (
    KafkaUnavailableError,
    RegistryUnavailableError,
    VersionLockedError,
    StageTimeoutError,
    CleanUpIncompleteError,
)


@contextmanager
def fail_without_retry() -> Iterator[None]:
    """Turn errors into Airflow's: fail the task at once when a retry would end the same way, skip it when nothing is to be done."""
    try:
        yield
    except RETRYABLE_ERRORS:
        raise
    except NothingToDoError as reason:
        raise AirflowSkipException(str(reason)) from None
    except FoldlakeError as error:
        LOG.error("%s", error)  # noqa: TRY400 - its message is complete
        raise AirflowFailException(str(error)) from None


def stage_run(context: Any) -> StageRun:  # noqa: ANN401 - Airflow's
    """Return what a stage's action gets of the run to which a task's context belongs."""
    settings, dag_run, task_instance = Settings(), context["dag_run"], context["ti"]

    def set_note(text: str) -> None:
        try:
            airflow_api(settings).set_note(dag_run.dag_id, dag_run.run_id, text)
        except (AirflowUnavailableError, OSError, ValueError, KeyError) as error:
            # The run does not depend on its note.
            LOG.warning("cannot set the run's note: %s", error)

    return StageRun(
        settings=settings,
        run_id=dag_run.run_id,
        form=context["params"],
        sent=dag_run.conf or {},
        results=Results(task_instance),
        requested_at=dag_run.run_after,
        set_note=set_note,
    )


class Results(Mapping[str, Any]):
    """What the tasks of a run returned, by task id; None for one that returned nothing."""

    def __init__(self, task_instance: Any) -> None:  # noqa: ANN401 - Airflow's
        self._task_instance = task_instance

    def __getitem__(self, task_id: str) -> Any:  # noqa: ANN401 - any JSON
        """Return a task's result."""
        return self._task_instance.xcom_pull(task_ids=task_id)

    def __iter__(self) -> Iterator[str]:
        """Return the ids of the tasks upstream."""
        return iter(self._task_instance.task.upstream_task_ids)

    def __len__(self) -> int:
        """Return the number of tasks upstream."""
        return len(self._task_instance.task.upstream_task_ids)
