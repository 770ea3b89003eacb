"""The work of the DAG `retirement`: retires the version that its form names, or all versions that are due."""

from include.airflow.login import airflow_api
from include.airflow.names import REBUILD_DAG, topic_rebuild_dag
from include.airflow.stage_execution import fail_without_retry
from include.declarations.catalog import load_catalog
from include.rebuild.errors import RequestError
from include.rebuild.retirement import retire_version, sweep
from include.rebuild.topic_versions.request import rebuilt_topics
from include.settings import Settings


def retire_due_versions(read_model: str | None, version: int | None) -> list[str]:
    """Retire the given version, or all that are due; return a line for each version changed."""
    settings = Settings()
    with fail_without_retry():
        if version is None:
            return sweep(settings, lambda run_id: _has_ended(settings, run_id))
        if not read_model:
            raise RequestError("read_model is required with version.")
        retire_version(settings, read_model, version)
        return [f"retired v{version} of {read_model}"]


def _has_ended(settings: Settings, run_id: str) -> bool:
    """Return whether no DAG has a run with this id that builds versions."""
    topics = rebuilt_topics(load_catalog(settings.declaration_folders))
    api = airflow_api(settings.home, settings.airflow)
    return all(
        api.run_state(dag_id, run_id) not in {"queued", "running"}
        for dag_id in (REBUILD_DAG, *map(topic_rebuild_dag, topics))
    )
