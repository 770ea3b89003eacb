"""The runs that build versions: whether one has ended, and how a rebuild is aborted."""

import logging
from dataclasses import dataclass
from pathlib import Path

from include.airflow.client import AirflowApi, AirflowUnavailableError, airflow_api
from include.airflow.names import ABORTED, REBUILD_DAG, topic_rebuild_dag
from include.declarations.load import load_catalog
from include.rebuild.errors import NoRebuildError
from include.rebuild.request import rebuilt_topics
from include.rebuild.retirement import abandon_together
from include.rebuild.version_cleanup import remove_leftovers
from include.settings import Settings
from include.versions.registry import VersionRegistry, record_of
from include.versions.version_record import UNFINISHED_STAGES

LOG = logging.getLogger(__name__)
ACTIVE = frozenset({"queued", "running"})


@dataclass(frozen=True)
class AbortedRebuild:
    """An aborted rebuild: its run, and the versions that it was building, by read model."""

    run_id: str
    versions: dict[str, int]


def has_ended(settings: Settings, run_id: str) -> bool:
    """Return whether no DAG has an active run with this id that builds versions; raises AirflowUnavailableError."""
    return (
        _active_dag(settings.declaration_folders, airflow_api(settings.home, settings.airflow), run_id)
        is None
    )


def abort_rebuild(settings: Settings, read_model: str) -> AbortedRebuild:
    """Stop the rebuild of a read model: abandon all versions of its run, end the run, and remove what the versions leave.

    The registry comes first: from then on no version of the run can be promoted, and every process that builds one ends.

    Raises:
        NoRebuildError: no rebuild of the read model is running.
        VersionInUseError: it was promoted in this moment.
        VersionLockedError: a process still writes a version. It is abandoned all the same, and the DAG `retirement` removes the rest.
    """
    with VersionRegistry(settings.kafka_connection, settings.topics.replication_factor) as registry:
        own = record_of(registry, read_model).unfinished
        if own is None:
            raise NoRebuildError(
                f"No rebuild of {read_model} is running: `./foldlake versions` shows its versions. A promoted version is undone by "
                f"`./foldlake rollback {read_model} --reason …`."
            )
        versions = {read_model: own.number} | {
            record.read_model: version.number
            for record in registry.read().values()
            for version in record.versions
            if own.run_id and version.run_id == own.run_id and version.stage in UNFINISHED_STAGES
        }
        abandon_together(registry, versions)
    _end_run(settings, own.run_id)
    for name, number in versions.items():
        remove_leftovers(settings, name, number)
    return AbortedRebuild(own.run_id, versions)


def _end_run(settings: Settings, run_id: str) -> None:
    """Mark the run as failed, which stops its tasks. Without Airflow none of them runs."""
    try:
        api = airflow_api(settings.home, settings.airflow)
        dag_id = _active_dag(settings.declaration_folders, api, run_id)
        if dag_id is not None:
            api.set_note(dag_id, run_id, f"{ABORTED}{api.note(dag_id, run_id)}")
            api.mark_run(dag_id, run_id, "failed")
    except (AirflowUnavailableError, OSError, ValueError, KeyError) as error:
        LOG.warning("the run %s is not ended, its next task fails: %s", run_id, error)


def _active_dag(folders: tuple[Path, ...], api: AirflowApi, run_id: str) -> str | None:
    topics = rebuilt_topics(load_catalog(folders))
    dags = (REBUILD_DAG, *map(topic_rebuild_dag, topics))
    return next((dag_id for dag_id in dags if api.run_state(dag_id, run_id) in ACTIVE), None)
