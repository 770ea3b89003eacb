"""The sections of the status in their order, and how often each is read at most."""

from functools import partial
from typing import Any

from include.status.measurement import read_stream_status
from include.stream.launch_failures import read as read_failed_launches
from query_api.history import history_file
from query_api.history.samples import INTERVAL_S
from query_api.status import (
    lake,
    nodes,
    partitions,
    quality,
    rebuilds,
    services,
    versions,
)
from query_api.status.node_view import NodeView
from query_api.status.status_document import SectionSource


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
    return {"interval_s": INTERVAL_S, "models": history_file.read_json(view.settings.store_dir)}


# What costs little is read every second. Reading the stream opens connections to Kafka and takes about a second; the tables' logs are
# on a disk, or on a file system elsewhere.
_READ = (
    ("services", services.read, 3.0),
    ("nodes", nodes.read, 1.0),
    ("versions", versions.read, 2.0),
    ("rebuilds", rebuilds.read, 3.0),
    ("stream", _stream, 5.0),
    ("partitions", partitions.read, 1.0),
    ("lake", lake.read, 15.0),
    ("quality", quality.read, 5.0),
    ("history", _history, 5.0),
)


def sources(view: NodeView) -> tuple[SectionSource, ...]:
    """Return the sections of a node's status."""
    return tuple(SectionSource(name, partial(read, view), max_age_s) for name, read, max_age_s in _READ)
