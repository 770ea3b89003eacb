"""The sections `versions` and `rebuilds`: every version that has not ended, and how far those are that are being built."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from include.errors import KafkaUnavailableError
from include.rebuild.stage_progress import StageProgress, running_rebuilds
from include.versions.registry import VersionRegistry
from include.versions.version_record import ENDED_STAGES, Stage, Version
from query_api.cluster.node_state import NodeState
from query_api.status.node_view import NodeView


def read_versions(view: NodeView) -> list[dict[str, Any]]:
    """Return one entry for each version that has not ended; without Kafka, what the node knows: not why and since when."""
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


def _entry(read_model: str, version: Version) -> dict[str, Any]:
    return {
        "read_model": read_model,
        "version": version.number,
        "stage": version.stage.value,
        "fold_revision": version.fold_revision,
        "reason": version.reason,
        "created_at": version.created_at,
        "live_since": version.live_since or None,
        "kept_until": version.retire_after or None,
        "source_topic": version.source_topic,
        "start_offsets": list(version.start_offsets),
    }


def _known_here(state: NodeState) -> list[dict[str, Any]]:
    unknown = dict.fromkeys(("fold_revision", "created_at", "live_since", "kept_until"))
    return [
        {
            "read_model": model.name,
            "version": version.number,
            "stage": version.stage,
            "reason": "",
            "source_topic": version.source_topic,
            "start_offsets": [],
            **unknown,
        }
        for model in state.models.values()
        for version in model.versions.values()
    ]


def read_rebuilds(view: NodeView) -> list[dict[str, Any]]:
    """Return one entry for each unfinished version; raises KafkaUnavailableError.

    progress: of each of its stages that runs, as in StageProgress. ready_partitions, partitions: of a candidate, on this node.
    """
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
) -> dict[str, Any]:
    airflow = view.settings.airflow.pages_url
    run = f"{airflow}/dags/rebuild/runs/{quote(version.run_id, safe='')}" if version.run_id else None
    entry = {
        "read_model": read_model,
        "version": version.number,
        "stage": version.stage.value,
        "reason": version.reason,
        "started_at": version.created_at,
        "run_id": version.run_id,
        "run_url": run,
        "progress": [
            stage.to_json()
            for stage in stages
            if (stage.read_model, stage.version) == (read_model, version.number) and stage.age_s is not None
        ],
        "ready_partitions": None,
        "partitions": None,
    }
    return entry if version.stage is Stage.BUILDING else entry | _loaded(view, read_model, version)


def _loaded(view: NodeView, read_model: str, version: Version) -> dict[str, Any]:
    state = view.state()
    model = None if state is None else state.models.get(read_model)
    stored = None if model is None else model.versions.get(version.number)
    if model is None or stored is None:
        return {}
    ready = sum(partition.is_ready for partition in stored.partitions.values())
    return {"ready_partitions": ready, "partitions": len(stored.partitions)}
