"""The interface of a store in a check: its replicas, the keys that they must have, and their records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, crc32, lit

from include.nodes.record_requests import KeySample
from include.position import Offsets
from include.quality.check import StoreName


@dataclass(frozen=True)
class StoreReplica:
    """A replica that must have every key, or every key of one changelog partition.

    cut: source partition -> offset; the records must contain every event below it.
    key_partition: the changelog partition whose keys the replica has; None: all keys.
    since: in an incremental check, source partition -> offset; only keys with an event at or above it are compared.
    lag_s: upper bound of the age of the oldest event that the replica lacks; 0 if it lacks none.
    """

    name: str
    cut: Offsets
    key_partition: int | None = None
    lag_s: float = 0.0
    since: Offsets | None = None


@dataclass(frozen=True)
class FrameSample(KeySample):
    """A sample of keys that can be taken from a frame."""

    def of(self, frame: DataFrame) -> DataFrame:
        """Return the rows of the sample from a frame with a column `key`."""
        if self.buckets == 1:
            return frame
        return frame.where(crc32(col("key").cast("binary")) % lit(self.buckets) == lit(self.bucket))


@dataclass(frozen=True)
class Reading:
    """The result of reading a store.

    records: place (the replica's name), key, state (a struct of the state's own fields), then the position's columns. One
        row per record.
    faults: reasons why the whole store cannot be right. notes: how it was read, for the report.
    table_version: of a Delta table, the version that was read.
    """

    replicas: tuple[StoreReplica, ...]
    records: DataFrame
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

    def read(self, sample: FrameSample) -> Reading:
        """Return the replicas and their records; raises QualityError when the store cannot be read."""

    def read_keys(self, keys: DataFrame, number: int) -> Reading:
        """Return the replicas, and their records of some keys: `key`, `number` of them; raises QualityError as `read` does."""

    def reread(self, keys: DataFrame) -> DataFrame:
        """Return the current records of these (place, key) pairs, if the store may catch up."""

    def close(self) -> None:
        """Release the resources of the store."""


@dataclass(frozen=True)
class StoreReading:
    """A store and its reading of `count` records, which are cached, so that every evaluation sees the same ones."""

    store: Store
    reading: Reading
    count: int

    @property
    def replica_names(self) -> list[str]:
        """The names of the store's replicas."""
        return [replica.name for replica in self.reading.replicas]
