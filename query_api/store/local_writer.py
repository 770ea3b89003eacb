"""What the writers of stores share that only this node uses: there is nobody to hand a partition over to."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from query_api.store.base import ChangelogPosition


class LocalWriter(ABC):
    """A part of StoreWriter, made of the rest."""

    is_shared = False

    @abstractmethod
    def positions(self) -> dict[int, ChangelogPosition]:
        """Return the position of every partition that the store has records of."""

    @abstractmethod
    def forget(self, partition: int) -> None:
        """Remove a partition's records and position."""

    def adopt(self, partitions: Iterable[int]) -> dict[int, ChangelogPosition]:
        """Return the positions of those partitions that the store has records of."""
        wanted = set(partitions)
        return {p: position for p, position in self.positions().items() if p in wanted}

    def release(self, partition: int) -> None:
        """Remove a partition's records and position."""
        self.forget(partition)

    def mark_complete(self, partitions: Iterable[int]) -> None:  # noqa: B027 - nothing is to be done
        """Do nothing: only this node reads the store, and it knows its follower's state."""

    def readable_positions(self) -> dict[int, ChangelogPosition]:
        """Return the position of every partition."""
        return self.positions()
