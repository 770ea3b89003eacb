"""The section `rebuilds`: the versions that are being built, and how far they are."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from include.rebuild.stage_progress import StageProgress, running_rebuilds
from include.versions.registry import VersionRegistry
from include.versions.version_record import Stage, Version
from query_api.status.node_view import NodeView


def read(view: NodeView) -> list[dict[str, Any]]:
    """Return one entry for each unfinished version; raises KafkaUnavailableError.

    progress: of each of its stages that runs, as in StageProgress. ready_partitions, partitions: of a candidate, on this node.
    """
    view.require_kafka()
    servers = view.settings.kafka.bootstrap_servers
    with VersionRegistry(servers) as registry:
        records = registry.read()
    unfinished = [
        (record.read_model, version)
        for record in records.values()
        if (version := record.unfinished) is not None
    ]
    stages = running_rebuilds(servers) if unfinished else ()
    return [_entry(view, read_model, version, stages) for read_model, version in unfinished]


def _entry(
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
