"""The section `versions`: every read model with its versions, of which one is live and one may be a candidate."""

from typing import Any

from include.errors import KafkaUnavailableError
from include.versions.registry import VersionRegistry
from include.versions.version_record import ENDED_STAGES, Version
from query_api.cluster.node_state import NodeState
from query_api.status.node_view import NodeView


def read(view: NodeView) -> list[dict[str, Any]]:
    """Return one entry for each version that has not ended; without Kafka, what the node knows: not why and since when."""
    try:
        view.require_kafka()
        with VersionRegistry(view.settings.kafka.bootstrap_servers) as registry:
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
    return [
        {
            "read_model": model.name,
            "version": version.number,
            "stage": version.stage,
            "fold_revision": None,
            "reason": "",
            "created_at": None,
            "live_since": None,
            "kept_until": None,
            "source_topic": version.source_topic,
            "start_offsets": [],
        }
        for model in state.models.values()
        for version in model.versions.values()
    ]
