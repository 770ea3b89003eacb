"""The limit of open files, which also limits a worker's connections."""

import logging
import resource

# Files that a worker has open besides its clients' connections: stores, connections to Kafka, to the registry and to other nodes.
RESERVED_FILES = 512
MIN_CONNECTIONS = 16

log = logging.getLogger(__name__)


def allowed_connections(wanted: int) -> int:
    """Raise this process's limit of open files as far as `wanted` connections need it and the system permits.

    Returns the number of connections that a worker may have. Without that limit, a worker that cannot open another file would try to
    accept the same connection again and again. Workers inherit the limit of open files.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + RESERVED_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    limit = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    allowed = max(MIN_CONNECTIONS, min(wanted, limit - RESERVED_FILES))
    if allowed < wanted:
        log.warning(
            "each worker accepts %d connections instead of %d (FOLDLAKE_NODE_HTTP_CONNECTIONS): the limit of open files is %d",
            allowed,
            wanted,
            limit,
        )
    return allowed
