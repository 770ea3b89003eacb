"""What can go wrong inside a query node, each with what the operator should do."""

from pathlib import Path

from include.errors import FoldlakeError


class QueryNodeError(FoldlakeError):
    """The root of the query node's own errors."""


class StoreMissingError(QueryNodeError):
    """There is no store for a version of a read model on this node, or not yet."""


class StoreUnusableError(QueryNodeError):
    """A store has to be replaced by an empty one."""

    @classmethod
    def of_another_changelog(cls, path: Path, held: object, found: object) -> "StoreUnusableError":
        """Return the error for the store at `path` that was filled from `held`; the changelog is `found`."""
        return cls(
            f"The store at {path} was filled from {held}, the changelog is now {found}: it is rebuilt from the changelog."
        )


class StoreDamagedError(StoreUnusableError):
    """A store holds something that was never written to it, or is gone."""

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
            f"The store at {path} cannot grow ({reason}): free space on its disk; a node that has ended is then started again."
        )


class FollowingStoppedError(QueryNodeError):
    """Following a changelog was told to stop while it was waiting for something."""


class StoreLockedError(QueryNodeError):
    """Another materializer writes this node's store."""

    @classmethod
    def at(cls, path: Path) -> "StoreLockedError":
        """Return the error for the node directory `path`."""
        return cls(f"Another materializer holds {path}: give every node its own name (FOLDLAKE_NODE_NAME).")


class FencedError(QueryNodeError):
    """Another process has joined the group under this node's name."""
