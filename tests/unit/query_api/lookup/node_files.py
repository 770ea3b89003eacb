"""A node's files, as its materializer writes them, for the tests of lookups."""

import time
from dataclasses import replace

from include.read_models.balance.model import READ_MODEL
from include.settings import Settings
from query_api.cluster import node_state
from query_api.cluster.node_state import ModelState, NodeState, PartitionState, VersionState
from query_api.store.base import Binding, Change, ChangelogPosition
from query_api.store.directory import StoreDirectory
from query_api.store.lmdb.backend import LmdbBackend
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
        partitions: int = 1,
    ) -> None:
        """Write the node's state: it has every partition of these versions, the first of which is live.

        confirmed_s_ago: when the end of each partition was last confirmed. standby: URL of another node. is_owner: whether
            it owns the partitions; otherwise no node does.
        """
        at = time.time() - confirmed_s_ago
        partition = PartitionState(is_ready=True, confirmed_at=at, as_of=at)
        stored = dict.fromkeys(range(partitions), partition)
        held = {n: VersionState(n, "live", f"balance.v{n}.changelog", stored) for n in versions}
        url = self._settings.node.advertised_url
        owners = dict.fromkeys(stored, url) if is_owner else {}
        model = ModelState(
            "balance",
            "balance",
            partitions,
            1,
            versions[0],
            held,
            frozenset(owners),
            owners=owners,
            standbys=dict.fromkeys(stored, (url,)),
        )
        nodes = {} if standby is None else {standby: "standby"}
        state = NodeState(self._settings.node.name, url, nodes=nodes, models={"balance": model})
        node_state.write(self._settings.store_dir, replace(state, written_at=time.time()))
