"""What the stores of a check are read as, with either engine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from include.position import Offsets
from include.quality.check import StoreName

# The column of `stored` with the name of the replica; a field of the state may be named `place`.
PLACE = "record:place"


@dataclass(frozen=True)
class Replica:
    """A replica that must have every key, or every key of one changelog partition.

    store: its store's name. cut: source partition -> offset; the records must contain every event below it.
    key_partition: the changelog partition whose keys it has; None: all keys.
    since: in an incremental check, source partition -> offset; only keys with an event at or above it are compared.
    """

    name: str
    store: str
    cut: Offsets
    key_partition: int | None = None
    since: Offsets | None = None


@dataclass(frozen=True)
class Reading:
    """What a store has been read as.

    faults: reasons why the whole store cannot be right. notes: how it was read, for the report. table_version: of a Delta table, the
    version that was read.
    """

    replicas: tuple[Replica, ...]
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    table_version: int | None = None


class Store(Protocol):
    """A store of state records."""

    name: StoreName

    @property
    def may_catch_up(self) -> bool:
        """Whether missing events may still arrive while the check waits."""

    def key_counts(self) -> Mapping[str, int]:
        """Return replica -> its current number of keys, in the sample or not."""

    def read(self) -> Reading:
        """Add the records of the keys that are compared to `stored`; raises QualityError when the store cannot be read."""

    def lag_s(self, complete_up_to: Offsets) -> float:
        """Return the age of the oldest event that the store lacks, if it is the lake; 0 if it lacks none. complete_up_to: its cut."""

    def close(self) -> None:
        """Release the resources of the store."""
