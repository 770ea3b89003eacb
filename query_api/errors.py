"""What can go wrong inside a query node, each with what the operator should do."""

from pathlib import Path

from include.errors import FoldlakeError


class QueryNodeError(FoldlakeError):
    """The root of the query node's own errors."""


class StoreMissingError(QueryNodeError):
    """There is no store for a version of a read model on this node, or not yet."""


class StoreDamagedError(QueryNodeError):
    """A store holds something that was never written to it."""

    @classmethod
    def at(cls, path: Path, finding: str) -> "StoreDamagedError":
        """Return the error for a finding in the store at `path`."""
        return cls(
            f"The store at {path} is damaged ({finding}): it is thrown away and rebuilt from the changelog."
        )


class StoreFullError(QueryNodeError):
    """The store cannot grow any further."""

    @classmethod
    def at(cls, path: Path, reason: str) -> "StoreFullError":
        """Return the error for the store at `path`."""
        return cls(
            f"The store at {path} cannot grow ({reason}): free space on its disk, then start the node again."
        )


class StoreLockedError(QueryNodeError):
    """Another materializer writes this node's store."""

    @classmethod
    def at(cls, path: Path) -> "StoreLockedError":
        """Return the error for the node directory `path`."""
        return cls(f"Another materializer holds {path}: give every node its own name (FOLDLAKE_NODE_NAME).")


class FencedError(QueryNodeError):
    """Another process has joined the group under this node's name."""
