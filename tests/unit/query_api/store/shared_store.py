"""Short forms for the tests of stores in Redis."""

from include.settings import Placement
from query_api.store.backends import load_shared_backends
from query_api.store.base import Change, ChangelogPosition, StoreBackend
from tests.unit.query_api.store.store_process import node_settings


def at(next_offset: int) -> ChangelogPosition:
    return ChangelogPosition(next_offset, 1.0)


def change(key: bytes, offset: int, event_count: int = 1, value: bytes | None = b"v") -> Change:
    return Change(key, event_count, offset, value)


def backend_of(url: str) -> StoreBackend:
    """Return the backend of stores in the server at this URL."""
    return load_shared_backends(node_settings("lmdb", url), {"balance": Placement.REDIS})["balance"]
