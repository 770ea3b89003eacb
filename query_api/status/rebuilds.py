"""The section `rebuilds`: the versions that are being built, and how far they are."""

from typing import Any
from urllib.parse import quote

from include.declarations.read_model import ReadModel
from include.kafka.log_reading import log_consumer
from include.kafka.topics import admin_client
from include.versions.build_progress import build_progress
from include.versions.registry import VersionRegistry
from include.versions.version_record import Stage, Version
from query_api.status.node_view import NodeView


def read(view: NodeView) -> list[dict[str, Any]]:
    """Return one entry for each unfinished version; raises KafkaUnavailableError.

    folded_events, events: of a version in stage building. ready_partitions, partitions: of a candidate, on this node.
    """
    view.require_kafka()
    with VersionRegistry(view.settings.kafka.bootstrap_servers) as registry:
        records = registry.read()
    return [
        _entry(view, record.read_model, version)
        for record in records.values()
        if (version := record.unfinished) is not None
    ]


def _entry(view: NodeView, read_model: str, version: Version) -> dict[str, Any]:
    airflow = view.settings.airflow.base_url
    run = f"{airflow}/dags/rebuild/runs/{quote(version.run_id, safe='')}" if version.run_id else None
    entry = {
        "read_model": read_model,
        "version": version.number,
        "stage": version.stage.value,
        "reason": version.reason,
        "started_at": version.created_at,
        "run_id": version.run_id,
        "run_url": run,
        "folded_events": None,
        "events": None,
        "ready_partitions": None,
        "partitions": None,
    }
    model = view.catalog.models.get(read_model)
    if version.stage is Stage.BUILDING and model is not None and version.fold_revision in model.folds:
        return entry | _building(view, model, version)
    return entry | _loaded(view, read_model, version)


def _building(view: NodeView, model: ReadModel, version: Version) -> dict[str, Any]:
    servers = view.settings.kafka.bootstrap_servers
    consumer = log_consumer(servers)
    try:
        progress = build_progress(model, version, admin_client(servers), consumer)
    finally:
        consumer.close()
    if progress is None:
        return {}
    return {"folded_events": progress.folded_events, "events": progress.events}


def _loaded(view: NodeView, read_model: str, version: Version) -> dict[str, Any]:
    state = view.state()
    model = None if state is None else state.models.get(read_model)
    stored = None if model is None else model.versions.get(version.number)
    if model is None or stored is None:
        return {}
    ready = sum(partition.is_ready for partition in stored.partitions.values())
    return {"ready_partitions": ready, "partitions": len(stored.partitions)}
