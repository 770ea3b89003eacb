"""A node's files, as its materializer writes them, for the tests of lookups."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from include.nodes.peers import HOP_HEADER, SERVED_HEADER
from include.read_models.balance.model import READ_MODEL
from include.settings import Placement, Settings
from query_api.cluster import node_state
from query_api.cluster.node_state import ModelState, NodeState, PartitionState, VersionState
from query_api.store.base import Binding, Change, ChangelogPosition
from query_api.store.directory import StoreDirectory
from query_api.store.lmdb import LmdbBackend
from tests.unit.query_api.balance_record import SCHEMA_ID

KEY = b"you"


class NodeFiles:
    """The files of a node."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._directory = StoreDirectory(settings.store_dir, LmdbBackend(64 * 1024 * 1024))

    def create_store(self, version: int, changes: list[Change], partitions: int = 1) -> None:
        """Create a version's store; if it has records, with their schema."""
        changelog = Binding("cluster", f"balance.v{version}.changelog", "topic id")
        store = self._directory.open_writer("balance", version, partitions, changelog)
        if changes:
            schemas = {SCHEMA_ID: READ_MODEL.state_schema.text}
            store.commit({0: changes}, {0: ChangelogPosition(len(changes), time.time())}, schemas)
        store.close()

    def append(self, version: int, change: Change, next_offset: int) -> None:
        """Apply a record of partition 0 to a version's store, which has then read up to `next_offset`."""
        store = self._directory.open_writer("balance", version, 1, None)
        store.commit({0: [change]}, {0: ChangelogPosition(next_offset, time.time())}, {})
        store.close()

    def remove_store(self, version: int) -> None:
        """Remove a version's store."""
        self._directory.discard("balance", version)

    def replace_store(self, version: int) -> None:
        """Replace a version's store with an empty one."""
        self.remove_store(version)
        self.create_store(version, [])

    def publish(
        self,
        *versions: int,
        confirmed_s_ago: float = 0.0,
        standby: str | None = None,
        is_owner: bool = True,
        owner: str | None = None,
        partitions: int = 1,
        placement: Placement = Placement.PARTITIONED,
    ) -> None:
        """Write the node's state: it has every partition of these versions, the first of which is live.

        confirmed_s_ago: when the end of each partition was last confirmed. standby: URL of another node. is_owner: whether
            it owns the partitions; otherwise `owner`, the URL of another node, does, or none.
        """
        at = time.time() - confirmed_s_ago
        partition = PartitionState(is_ready=True, confirmed_at=at, as_of=at)
        stored = dict.fromkeys(range(partitions), partition)
        held = {n: VersionState(n, "live", f"balance.v{n}.changelog", stored) for n in versions}
        url = self._settings.advertised_url
        is_owner = is_owner and owner is None
        owners = dict.fromkeys(stored, url if is_owner else owner)
        model = ModelState(
            "balance",
            "balance",
            partitions,
            1,
            versions[0],
            held,
            frozenset(stored if is_owner else ()),
            owners={p: found for p, found in owners.items() if found is not None},
            standbys=dict.fromkeys(stored, (url,)),
            placement=placement,
        )
        nodes = {} if standby is None else {standby: "standby"}
        state = NodeState(self._settings.node.name, url, nodes=nodes, models={"balance": model})
        node_state.write(self._settings.store_dir, replace(state, written_at=time.time()))


class OtherNode(ThreadingHTTPServer):
    """Another node, which answers every lookup with `status` and `headers`, and counts the lookups."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        self.hops: list[str | None] = []
        self.served: list[str | None] = []
        self.status, self.headers = status, headers
        node = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                node.hops.append(self.headers.get(HOP_HEADER))
                node.served.append(self.headers.get(SERVED_HEADER))
                self.send_response(node.status)
                for name, text in {"Content-Length": "2", **node.headers}.items():
                    self.send_header(name, text)
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        """Its URL."""
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def other_node(status: int = 200, headers: Mapping[str, str] | None = None) -> Iterator[OtherNode]:
    with OtherNode(status, headers or {}) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
