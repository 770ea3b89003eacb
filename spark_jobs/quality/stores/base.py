"""What a store is to the check: replicas that must hold keys, and the records that they hold."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, crc32, lit, struct
from pyspark.sql.types import DataType, StructType

from include.declarations.read_model import ReadModel
from include.lake.tables import KEY_COLUMN
from include.nodes.key_sample import KeySample
from include.position import POSITION_COLUMNS, Offsets
from include.quality.check import StoreName
from include.settings import Settings
from include.versions.version_record import Version
from spark_jobs.quality.frame_cache import FrameCache


@dataclass(frozen=True)
class StoreReplica:
    """Something that must hold every key, or every key of one changelog partition.

    cut: source partition -> offset; what lies below it must be in the records.
    key_partition: the changelog partition whose keys it holds; None: all keys.
    lag_s: age of the oldest event that it lacks, at most; 0 when it lacks none.
    """

    name: str
    cut: Offsets
    key_partition: int | None = None
    lag_s: float = 0.0


@dataclass(frozen=True)
class Sample(KeySample):
    """A sample of keys, taken from frames."""

    def of(self, frame: DataFrame) -> DataFrame:
        """Keep the sample's rows of a frame with a column `key`."""
        if self.buckets == 1:
            return frame
        return frame.where(crc32(col("key").cast("binary")) % lit(self.buckets) == lit(self.bucket))


@dataclass(frozen=True)
class Target:
    """What is checked: one version of a read model, on this Kafka.

    cut: the source's end offsets when the check began.
    is_folded_live: whether the stream driver folds it in real time, so that what is not there yet is on its way.
    state_type: the Spark type of the state record's own fields, position_type that of its position.
    frames: those that this check caches.
    """

    spark: SparkSession
    settings: Settings
    model: ReadModel
    version: Version
    cut: Offsets
    is_folded_live: bool
    state_type: StructType
    position_type: Mapping[str, DataType]
    frames: FrameCache = field(default_factory=FrameCache)


@dataclass(frozen=True)
class Reading:
    """What was read of a store.

    records: place (the replica's name), key, state (a struct of the state's own fields), then the position's columns. One
        row a record.
    faults: why the store cannot be right as a whole. notes: how it was read, for the report.
    """

    replicas: tuple[StoreReplica, ...]
    records: DataFrame
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Store(Protocol):
    """A store of state records."""

    name: StoreName

    @property
    def may_catch_up(self) -> bool:
        """Whether what is not there yet may come while the check waits."""

    def key_counts(self) -> Mapping[str, int]:
        """Return replica -> number of keys that it holds now, in the sample or not."""

    def read(self, sample: Sample) -> Reading:
        """Return its replicas and their records; raises QualityError when it cannot be read."""

    def reread(self, keys: DataFrame) -> DataFrame:
        """Return the records of these (place, key) as they are now, where they may catch up."""

    def close(self) -> None:
        """Free what reading took."""


def state_records(target: Target, replica: Column, rows: DataFrame) -> DataFrame:
    """Return rows of a table's columns as records of a replica: see `Reading.records`."""
    state = struct(*(col(field.name).cast(field.dataType).alias(field.name) for field in target.state_type))
    return rows.select(
        replica.alias("place"),
        col(KEY_COLUMN).alias("key"),
        state.alias("state"),
        *(col(name).cast(target.position_type[name]).alias(name) for name in POSITION_COLUMNS),
    )
