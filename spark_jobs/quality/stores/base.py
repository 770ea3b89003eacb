"""The records that a check with Spark has read, and the interface of the stores that add to them."""

from collections.abc import Sequence
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql.functions import broadcast, col, crc32, lit

from include.nodes.record_requests import KeySample
from include.quality.check import StoreName
from include.replay.check.readings import PLACE, Store
from spark_jobs.quality.session import CheckSession
from spark_jobs.quality.tables import SparkTables

# More keys are joined with a shuffle of the records.
BROADCAST_KEYS = 100_000
REPLICA_KEY = ("place", "key")


class FrameStore(Store, Protocol):
    """A store whose records are a frame with the columns of `stored`."""

    def current(self, late: DataFrame) -> DataFrame:
        """Return the current records of some (place, key) pairs, if the store may catch up."""


class StoredFrames:
    """The table `stored`, to which stores add frames.

    sample: the keys that are compared. keys: a frame of the keys that are compared, `number` of them; None: those of the sample.
    """

    def __init__(self, session: CheckSession, tables: SparkTables) -> None:
        self._session = session
        self._tables = tables
        self.sample = KeySample()
        self.keys: DataFrame | None = None
        self.number = 0
        self.count = 0
        self._late: DataFrame | None = None
        self._settled: DataFrame | None = None
        self._fresh: DataFrame | None = None

    def compared(self, records: DataFrame) -> DataFrame:
        """Return the records of the keys that are compared."""
        if self.keys is not None:
            keys = broadcast(self.keys) if self.number <= BROADCAST_KEYS else self.keys
            return records.join(keys, "key", "left_semi")
        if self.sample.buckets == 1:
            return records
        crc = crc32(col("key").cast("binary"))
        return records.where(crc % lit(self.sample.buckets) == lit(self.sample.bucket))

    @property
    def condition(self) -> str:
        """The condition on a key that is compared, in SQL of DuckDB."""
        if self.keys is not None:
            return "key IN (SELECT key FROM compared)"
        sample = self.sample
        if sample.buckets == 1:
            return "true"
        return f"crc32(CAST(key AS BLOB)) % {sample.buckets} = {sample.bucket}"

    def add(self, store: StoreName, records: DataFrame) -> None:
        """Add the records of a store, which are cached, so that every evaluation sees the same ones."""
        with self._session.reading(f"reading {store}"):
            kept = self._session.keep(records)
            self.count += kept.count()
        self._settled = kept if self._settled is None else self._settled.unionByName(kept)
        self._tables["stored"] = self._settled

    def reread(self, stores: Sequence[FrameStore]) -> None:
        """Replace the records that are late now, or were late before, by their current ones."""
        assert self._settled is not None  # noqa: S101 - the stores were read before
        if self._late is None:
            self._late = self._tables["late"].select(*REPLICA_KEY)
            late = self._late.withColumnRenamed("place", PLACE)
            self._settled = self._settled.join(late, [PLACE, "key"], "left_anti")
        fresh = self._settled.limit(0)
        for store in stores:
            fresh = fresh.unionByName(store.current(self._late))
        if self._fresh is not None:
            self._fresh.unpersist()
        self._fresh = self._session.keep(fresh)
        self._tables["stored"] = self._settled.unionByName(self._fresh)


def of_pairs(records: DataFrame, late: DataFrame) -> DataFrame:
    """Return the records of some (place, key) pairs."""
    return records.join(late.withColumnRenamed("place", PLACE), [PLACE, "key"], "left_semi")
