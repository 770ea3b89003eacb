"""The sections `versions` and `rebuilds`: every version that has not ended, and how far those are that are being built."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from include.errors import KafkaUnavailableError
from include.rebuild.stage_progress import StageProgress, running_rebuilds
from include.versions.registry import VersionRegistry
from include.versions.version_record import ENDED_STAGES, Stage, Version
from query_api.cluster.node_state import NodeState
from query_api.status.node_view import NodeView


@dataclass(frozen=True)
class VersionEntry:
    """A version that has not ended. Times are in ISO 8601.

    fold_revision, created_at, live_since, kept_until: None if they are not known, the latter two also if they do not apply.
    """

    read_model: str
    version: int
    stage: str
    source_topic: str
    reason: str = ""
    fold_revision: int | None = None
    created_at: str | None = None
    live_since: str | None = None
    kept_until: str | None = None
    start_offsets: Sequence[int] = ()


def read_versions(view: NodeView) -> list[VersionEntry]:
    """Return each version that has not ended; without Kafka, what the node knows: not why and since when."""
    try:
        view.require_kafka()
        with VersionRegistry(view.settings.kafka_connection) as registry:
            records = registry.read()
    except KafkaUnavailableError:
        state = view.state()
        return [] if state is None else _known_here(state)
    return [
        _entry(name, version)
        for name, record in sorted(records.items())
        for version in record.versions
        if version.stage not in ENDED_STAGES
    ]


def _entry(read_model: str, version: Version) -> VersionEntry:
    return VersionEntry(
        read_model,
        version.number,
        version.stage.value,
        version.source_topic,
        version.reason,
        version.fold_revision,
        version.created_at,
        version.live_since or None,
        version.retire_after or None,
        version.start_offsets,
    )


def _known_here(state: NodeState) -> list[VersionEntry]:
    return [
        VersionEntry(model.name, version.number, version.stage, version.source_topic)
        for model in state.models.values()
        for version in model.versions.values()
    ]


@dataclass(frozen=True)
class RebuildEntry:
    """A version that is being built. started_at: in ISO 8601.

    run_id, run_url: of its run in Airflow. progress: of each of its stages that runs. ready_partitions, partitions: of a candidate, on this
    node.
    """

    read_model: str
    version: int
    stage: str
    reason: str
    started_at: str
    run_id: str
    run_url: str | None
    progress: Sequence[StageProgress] = ()
    ready_partitions: int | None = None
    partitions: int | None = None


def read_rebuilds(view: NodeView) -> list[RebuildEntry]:
    """Return each unfinished version; raises KafkaUnavailableError."""
    view.require_kafka()
    kafka = view.settings.kafka_connection
    with VersionRegistry(kafka) as registry:
        records = registry.read()
    unfinished = [
        (record.read_model, version)
        for record in records.values()
        if (version := record.unfinished) is not None
    ]
    stages = running_rebuilds(kafka) if unfinished else ()
    return [_unfinished(view, read_model, version, stages) for read_model, version in unfinished]


def _unfinished(
    view: NodeView, read_model: str, version: Version, stages: Sequence[StageProgress]
) -> RebuildEntry:
    airflow = view.settings.airflow.pages_url
    run = f"{airflow}/dags/rebuild/runs/{quote(version.run_id, safe='')}" if version.run_id else None
    progress = [
        stage
        for stage in stages
        if (stage.read_model, stage.version) == (read_model, version.number) and stage.age_s is not None
    ]
    entry = RebuildEntry(
        read_model,
        version.number,
        version.stage.value,
        version.reason,
        version.created_at,
        version.run_id,
        run,
        progress,
    )
    state = view.state()
    model = None if state is None else state.models.get(read_model)
    stored = None if model is None else model.versions.get(version.number)
    if version.stage is Stage.BUILDING or stored is None:
        return entry
    ready = sum(partition.is_ready for partition in stored.partitions.values())
    return replace(entry, ready_partitions=ready, partitions=len(stored.partitions))
