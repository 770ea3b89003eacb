"""The store of one query node, opened for writing beside its materializer, to plant faults in it."""

from include.settings import Settings
from query_api.store.lmdb import layout


class NodeStore:
    """The first node's store of one partition of version 1 of a read model.

    right: the records to restore in the end.
    """

    def __init__(self, settings: Settings, read_model: str, partition: int) -> None:
        path = settings.home / "nodes" / "node-1" / f"{read_model}.v1"
        self._environment = layout.open_environment(
            path,
            map_size_bytes=settings.node.store_map_size_mb * 2**20,
            partitions=settings.topics.partitions,
            readonly=False,
        )
        self._records = self._environment.open_db(layout.partition_database(partition))
        with self._environment.begin(db=self._records) as transaction:
            self.right = dict(transaction.cursor())

    def stored(self, key: bytes) -> bytes:
        """Return the stored bytes of a key."""
        with self._environment.begin(db=self._records) as transaction:
            return bytes(transaction.get(key) or b"")

    def put(self, key: bytes, stored: bytes) -> None:
        """Store arbitrary bytes for a key."""
        with self._environment.begin(write=True, db=self._records) as transaction:
            transaction.put(key, stored)

    def delete(self, keys: list[bytes]) -> None:
        """Remove keys."""
        with self._environment.begin(write=True, db=self._records) as transaction:
            for key in keys:
                transaction.delete(key)

    def restore(self) -> None:
        """Restore the original records."""
        with self._environment.begin(write=True, db=self._records) as transaction:
            for key in [k for k, _ in transaction.cursor()]:
                transaction.delete(key)
            for key, stored in self.right.items():
                transaction.put(key, stored)
        self._environment.close()
