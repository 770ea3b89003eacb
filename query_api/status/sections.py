"""The sections of the status in their order, and how often each is read at most."""

from functools import partial
from typing import Any

from include.status.measurement import read_stream_status
from include.stream.launch_failures import read as read_failed_launches
from query_api.history.samples import INTERVAL_S, read_columns
from query_api.status.lake import read_lake
from query_api.status.node_view import NodeView
from query_api.status.nodes import read_nodes, read_partitions
from query_api.status.quality import read_quality
from query_api.status.services import read_services
from query_api.status.status_document import SectionSource
from query_api.status.versions import read_rebuilds, read_versions


def _stream(view: NodeView) -> dict[str, Any]:
    """Return the status of the stream, with `pace` and `failed_launches`; raises KafkaUnavailableError."""
    view.require_kafka()
    failed = read_failed_launches(view.settings.home)
    return {
        **read_stream_status(view.settings).to_json(),
        "pace": view.settings.stream.pace,
        "failed_launches": None
        if failed is None
        else {"failures": failed.failures, "since": failed.since, "last_error": failed.last_error},
    }


def _history(view: NodeView) -> dict[str, Any]:
    """Return `interval_s`, and `models`: what this node has measured in the last hour, read model -> field of a sample -> its values."""
    return {"interval_s": INTERVAL_S, "models": read_columns(view.settings.store_dir)}


# What costs little is read every second. Reading the stream opens connections to Kafka and takes about a second; the tables' logs are
# on a disk, or on a file system elsewhere.
_READ = (
    ("services", read_services, 3.0),
    ("nodes", read_nodes, 1.0),
    ("versions", read_versions, 2.0),
    ("rebuilds", read_rebuilds, 3.0),
    ("stream", _stream, 5.0),
    ("partitions", read_partitions, 1.0),
    ("lake", read_lake, 15.0),
    ("quality", read_quality, 5.0),
    ("history", _history, 5.0),
)


def sources(view: NodeView) -> tuple[SectionSource, ...]:
    """Return the sections of a node's status."""
    return tuple(SectionSource(name, partial(read, view), max_age_s) for name, read, max_age_s in _READ)
