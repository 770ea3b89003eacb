"""What Airflow's tasks of rebuild, rollback and retirement call: the stages' actions, with a run's words around them."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from include.airflow.client import AirflowUnavailableError
from include.airflow.names import REBUILD_DAG
from include.declarations.read_model import ReadModel, load_read_models
from include.errors import FoldlakeError, KafkaUnavailableError, RegistryUnavailableError
from include.rebuild.errors import NotTidiedUpError, RequestError, StageTimeoutError
from include.rebuild.handover import hand_over_version
from include.rebuild.hydration import hydrate
from include.rebuild.promotion import choose_rollback, promote_version, recheck_candidate, roll_back_version
from include.rebuild.registration import register_candidate
from include.rebuild.request import rebuild_request, rollback_request
from include.rebuild.retirement import abandon_run, retire_version, sweep
from include.rebuild.verification_summary import proof_summary
from include.settings import Settings
from include.versions.version_lock import VersionLockedError
from stack.components import airflow

LOG = logging.getLogger(__name__)
# Servers may be back, and locks free, at the next try; whatever else Foldlake decides, it would decide again.
WORTH_ANOTHER_TRY = (
    KafkaUnavailableError,
    RegistryUnavailableError,
    VersionLockedError,
    StageTimeoutError,
    NotTidiedUpError,
)


@contextmanager
def fail_without_retry() -> Iterator[None]:
    """Fail the task for good where another try would end the same way, with the error's own words."""
    try:
        yield
    except WORTH_ANOTHER_TRY:
        raise
    except FoldlakeError as error:
        LOG.error("%s", error)  # noqa: TRY400 - its message is all that is to be said
        raise AirflowFailException(str(error)) from None


def register(conf: Mapping[str, Any], params: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """Check the form, register the candidate and write the run's note; returns what the later tasks need."""
    settings = Settings()
    with fail_without_retry():
        _no_unknown(conf, params)
        request = rebuild_request(params, _models(settings), settings.rebuild.grace_h)
        version = register_candidate(settings, request, run_id)
        note(settings, REBUILD_DAG, run_id, f"{request.read_model} v{version.number}: {request.reason}")
    return {"version": version.number, "fold_revision": version.fold_revision, "grace_h": request.grace_h}


def hand_over(read_model: str, number: int) -> None:
    """Give the version to the stream driver."""
    with fail_without_retry():
        hand_over_version(Settings(), read_model, number)


def load_on_nodes(read_model: str, number: int, check_id: str) -> str:
    """Wait until the nodes have loaded the version; returns the proof's summary for the approval."""
    settings = Settings()
    with fail_without_retry():
        hydrate(settings, read_model, number)
    try:
        return proof_summary(settings, check_id)
    except Exception as error:  # noqa: BLE001 - a summary that cannot be read is no reason not to ask
        return f"The quality check's results cannot be read: {error}"


def promote(read_model: str, number: int, grace_h: float) -> int | None:
    """Make the version live; returns the number of the one that it replaced."""
    settings = Settings()
    with fail_without_retry():
        recheck_candidate(settings, read_model, number)
        replaced = promote_version(settings, read_model, number, grace_h)
    return None if replaced is None else replaced.number


def abandon(read_model: str, run_id: str) -> None:
    """Give up what this run has not promoted; skipped where there is nothing to give up."""
    with fail_without_retry():
        if abandon_run(Settings(), read_model, run_id) is None:
            raise AirflowSkipException("Nothing to abandon.")


def choose(dag_run: Any, params: Mapping[str, Any], dag_id: str, run_id: str) -> int:  # noqa: ANN401 - Airflow's
    """Check the rollback's form, choose its version, and write the run's note."""
    settings = Settings()
    with fail_without_retry():
        _no_unknown(dag_run.conf or {}, params)
        request = rollback_request(params, _models(settings))
        number = choose_rollback(settings, request, dag_run.run_after)
        note(settings, dag_id, run_id, f"{request.read_model} back to v{number}: {request.reason}")
    return number


def roll_back(read_model: str, number: int) -> None:
    """Make a previous version live again."""
    with fail_without_retry():
        roll_back_version(Settings(), read_model, number)


def sweep_all(read_model: str | None, number: int | None) -> list[str]:
    """Retire the version named, or do whatever is due; returns what was done."""
    settings = Settings()
    with fail_without_retry():
        if number is not None:
            if not read_model:
                raise RequestError("Of which read model? Name it beside the version.")
            retire_version(settings, read_model, number)
            return [f"retired v{number} of {read_model}"]
        return sweep(settings, lambda run_id: _is_over(settings, run_id))


def note(settings: Settings, dag_id: str, run_id: str, text: str) -> None:
    """Write a run's note; without one the run goes on as well."""
    try:
        airflow.api(settings).set_note(dag_id, run_id, text)
    except (AirflowUnavailableError, OSError, ValueError, KeyError) as error:
        LOG.warning("the run's note could not be written: %s", error)


def _is_over(settings: Settings, run_id: str) -> bool:
    return airflow.api(settings).run_state(REBUILD_DAG, run_id) not in ("queued", "running")


def _models(settings: Settings) -> dict[str, ReadModel]:
    # A worker is forked from a process that may have imported the modules long ago.
    return load_read_models(settings.read_models_dir, reload=True)


def _no_unknown(conf: Mapping[str, Any], params: Mapping[str, Any]) -> None:
    unknown = sorted(set(conf) - set(params))
    if unknown:
        raise RequestError(f"Unknown: {', '.join(unknown)}. There are: {', '.join(params)}.")
