"""Executes a stage's action within an Airflow task: builds its StageRun and maps its errors to Airflow's."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from include.airflow.client import AirflowUnavailableError
from include.airflow.login import airflow_api
from include.airflow.names import REFUSED
from include.errors import FoldlakeError, KafkaUnavailableError, RegistryUnavailableError
from include.rebuild.errors import (
    CleanUpIncompleteError,
    NoSlotsError,
    NothingToDoError,
    RequestError,
    StageTimeoutError,
    StaleRequestError,
)
from include.rebuild.stage import StageRun
from include.settings import Settings
from include.versions.start_rule import StartRuleError
from include.versions.transitions import RunAbandonedError, VersionChangeError
from include.versions.version_lock import VersionLockedError

LOG = logging.getLogger(__name__)
# A retry may succeed: the server may be up again, the lock released. Any other Foldlake error would recur.
RETRYABLE_ERRORS = (
    KafkaUnavailableError,
    RegistryUnavailableError,
    VersionLockedError,
    StageTimeoutError,
    CleanUpIncompleteError,
)
# A request that the registry's state or the declarations do not allow.
REFUSALS = (RequestError, NoSlotsError, StaleRequestError, StartRuleError, VersionChangeError)


@contextmanager
def fail_without_retry() -> Iterator[None]:
    """Map errors to Airflow's: fail the task without retry when a retry cannot succeed, skip it when there is nothing to do."""
    try:
        yield
    except RETRYABLE_ERRORS:
        raise
    except NothingToDoError as reason:
        raise AirflowSkipException(str(reason)) from None
    except FoldlakeError as error:
        LOG.error("%s", error)  # noqa: TRY400 - its message is complete
        raise AirflowFailException(str(error)) from None


@contextmanager
def skip_refused_request(set_note: Callable[[str], None]) -> Iterator[None]:
    """Skip the task, and with it those that follow, if the run's request is refused; `set_note` gets the reason.

    A run that was refused is no failure: it has changed nothing, and must not look like one that has failed.
    """
    try:
        yield
    except RunAbandonedError:
        # Not the request: this run was ended, and somebody has cleared its task.
        raise
    except REFUSALS as reason:
        LOG.warning("%s%s", REFUSED, reason)
        set_note(f"{REFUSED}{reason}")
        raise AirflowSkipException(f"{REFUSED}{reason}") from None


def stage_run(context: Any, read_models: tuple[str, ...]) -> StageRun:  # noqa: ANN401 - Airflow's
    """Return the run as a stage sees it, from the task's context. read_models: those of the stage; empty for the one in the form."""
    settings, dag_run, task_instance = Settings(), context["dag_run"], context["ti"]

    def set_note(text: str) -> None:
        try:
            airflow_api(settings.home, settings.airflow).set_note(dag_run.dag_id, dag_run.run_id, text)
        except (AirflowUnavailableError, OSError, ValueError, KeyError) as error:
            # The run does not depend on its note.
            LOG.warning("cannot set the run's note: %s", error)

    return StageRun(
        settings=settings,
        run_id=dag_run.run_id,
        read_models=read_models or (str(context["params"]["read_model"]),),
        form=context["params"],
        sent=dag_run.conf or {},
        requested_at=dag_run.run_after,
        set_note=set_note,
        result_of=lambda task_id: task_instance.xcom_pull(task_ids=task_id),
    )
