"""The sections of the status in their order, and how often each is read at most."""

from functools import partial

from query_api.status import (
    history,
    lake,
    nodes,
    partitions,
    quality,
    rebuilds,
    services,
    stream,
    versions,
)
from query_api.status.node_view import NodeView
from query_api.status.section import SectionSource

# What costs little is read every second. Reading the stream opens connections to Kafka and takes about a second; the tables' logs are
# on a disk, or on a file system elsewhere.
_READ = (
    ("services", services.read, 3.0),
    ("nodes", nodes.read, 1.0),
    ("versions", versions.read, 2.0),
    ("rebuilds", rebuilds.read, 3.0),
    ("stream", stream.read, 5.0),
    ("partitions", partitions.read, 1.0),
    ("lake", lake.read, 15.0),
    ("quality", quality.read, 5.0),
    ("history", history.read, 5.0),
)


def sources(view: NodeView) -> tuple[SectionSource, ...]:
    """Return the sections of a node's status."""
    return tuple(SectionSource(name, partial(read, view), max_age_s) for name, read, max_age_s in _READ)
