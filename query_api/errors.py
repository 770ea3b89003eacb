"""The errors of a query node; each message ends with the node's reaction or the operator's next step."""

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, Self

from include.errors import FoldlakeError


class QueryNodeError(FoldlakeError):
    """The base class of the query node's errors."""


class StoreMissingError(QueryNodeError):
    """This node has no store for a version of a read model: not yet, or no longer."""

    @classmethod
    def at(cls, path: Path) -> "StoreMissingError":
        """Return the error for the directory `path`."""
        return cls(f"There is no store at {path}: wait until the materializer has built it.")

    @classmethod
    def unreadable(cls, path: Path, reason: object) -> "StoreMissingError":
        """Return the error for a store that is being built or removed."""
        return cls(f"Cannot read the store at {path} ({reason}): wait until the materializer has built it.")

    @classmethod
    def without_server(cls, server: str, reason: object) -> "StoreMissingError":
        """Return the error for a shared store whose server does not answer."""
        return cls(f"{server} does not answer ({reason}): try again.")

    @classmethod
    def incomplete(cls, server: str, store: str, partition: int) -> "StoreMissingError":
        """Return the error for a partition of a shared store that the server does not have, or not up to what was read from it before."""
        return cls(
            f"{server} does not have partition {partition} of {store}, or has lost its newest records: wait until they are written again."
        )


class StoreUnusableError(QueryNodeError):
    """A store must be replaced by an empty one."""

    text: ClassVar[str] = "The store at {} cannot be used ({}): it is removed and rebuilt from the changelog."

    @classmethod
    def at(cls, path: Path, reason: object) -> Self:
        """Return the error for the store at `path`."""
        return cls(cls.text.format(path, reason))


class StoreDamagedError(StoreUnusableError):
    """A store contains data that was never written to it."""

    text = "The store at {} is damaged ({}): it is removed and rebuilt from the changelog."


class StoreWriteError(QueryNodeError):
    """The store is intact, but cannot be checked, opened or written now. It must be opened again."""

    text: ClassVar[str] = (
        "The store at {} cannot be written ({}): it keeps its records, and writing is tried again. Check its disk."
    )

    @classmethod
    def at(cls, path: Path, reason: object) -> Self:
        """Return the error for the store at `path`."""
        return cls(cls.text.format(path, reason))


class StoreFullError(StoreWriteError):
    """The store cannot grow. Once there is space, the same write succeeds."""

    text = "The store at {} cannot grow ({}): free space on its disk."


class ServerWriteError(StoreWriteError):
    """The server of a shared store cannot be written now. Parts of the last commit may be stored."""

    @classmethod
    def unanswered(cls, server: str, reason: object) -> "ServerWriteError":
        """Return the error for a server that does not answer."""
        return cls(
            f"{server} does not answer ({reason}): its records are written once it does. Check that it runs."
        )

    @classmethod
    def refused(cls, server: str, reason: object) -> "ServerWriteError":
        """Return the error for a server that rejects a request, for example because it has no memory left."""
        return cls(
            f"{server} rejects what a node writes ({reason}): it is tried again. Check the server's memory, and the user's permissions."
        )


class StoreFencedError(StoreWriteError):
    """A partition of a shared store is not as this writer left it: another writer has continued it, or the server lost it."""

    @classmethod
    def of(cls, store: str, partitions: Iterable[int]) -> "StoreFencedError":
        """Return the error for partitions of a store."""
        listed = ", ".join(map(str, sorted(partitions)))
        return cls(
            f"{store}: another writer has continued partitions {listed}, or the server has lost them: reading their positions again."
        )


class FollowingStoppedError(QueryNodeError):
    """A changelog follower was stopped while it was waiting."""


class StoreLockedError(QueryNodeError):
    """Another materializer writes this node's stores."""

    @classmethod
    def at(cls, path: Path, holder: str) -> "StoreLockedError":
        """Return the error for the node directory `path`, locked by the process `holder`."""
        return cls(
            f"Process {holder or 'unknown'} writes the stores in {path}: give every node a unique name "
            "(FOLDLAKE_NODE_NAME)."
        )


class FencedError(QueryNodeError):
    """Another process has joined the group under this node's name."""


class OutcomeUnknownError(QueryNodeError):
    """An event was handed to Kafka's client, and Kafka has not acknowledged it."""

    @classmethod
    def because(cls, reason: str) -> "OutcomeUnknownError":
        """Return the error for an event that may have been written, or may still be."""
        return cls(
            f"Kafka has not acknowledged the event ({reason}): it may have been written, or may still be. "
            "Look for it before you send the command again."
        )
