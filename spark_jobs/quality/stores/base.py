"""The interface of a store in a check: its replicas, the keys that they must have, and their records."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, crc32, lit, struct, when
from pyspark.sql.types import DataType, StructType

from include.declarations.read_model import KEY_COLUMN, ReadModel
from include.nodes.key_sample import KeySample
from include.position import POSITION_COLUMNS, Offsets
from include.quality.check import StoreName
from include.settings import Settings
from include.versions.version_record import Version
from include.work_progress import Progress
from spark_jobs.folding.written_states import has_failed


class FrameCache:
    """The cached frames of one check. Unless released, they would stay cached until the session ends.

    have_few_rows: of few rows, the frame is computed at once, and a frame of the result returned. Planning the queries takes longer
    than running them, and a cached frame is planned, and compared with every other cached frame, in each query that uses it.
    """

    def __init__(self) -> None:
        self.have_few_rows = False
        self._frames: list[DataFrame] = []

    def keep(self, frame: DataFrame) -> DataFrame:
        """Cache a frame, in memory as far as it fits and otherwise on disk; returns the frame to use from now on."""
        if self.have_few_rows:
            return frame.localCheckpoint()
        # What Spark calls MEMORY_AND_DISK in Python also serializes and compresses what is in memory.
        frame.persist(StorageLevel.MEMORY_AND_DISK_DESER)
        self._frames.append(frame)
        return frame

    def release(self) -> None:
        """Release all frames."""
        for frame in self._frames:
            frame.unpersist()
        self._frames.clear()


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
class Target:
    """The target of a check: one version of a read model on this Kafka.

    cut: the source's end offsets at the start of the check; cut_at_s: its time (Unix s).
    is_folded_live: whether the stream driver folds the version in real time, so that missing events may still arrive.
    state_type: the Spark type of the state record's own fields. position_type: that of its position fields.
    frames: the cache of frames of this check. report: also receives the progress of its steps.
    """

    spark: SparkSession
    settings: Settings
    model: ReadModel
    version: Version
    cut: Offsets
    is_folded_live: bool
    state_type: StructType
    position_type: Mapping[str, DataType]
    cut_at_s: float
    frames: FrameCache = field(default_factory=FrameCache)
    report: Callable[[Progress], None] | None = None


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


def state_records(target: Target, replica: Column, rows: DataFrame) -> DataFrame:
    """Return rows with a table's columns as records of a replica: see `Reading.records`."""
    state = struct(*(col(field.name).cast(field.dataType).alias(field.name) for field in target.state_type))
    return rows.select(
        replica.alias("place"),
        col(KEY_COLUMN).alias("key"),
        state.alias("state"),
        *(col(name).cast(target.position_type[name]).alias(name) for name in POSITION_COLUMNS),
    )


def record_of(target: Target, states: DataFrame) -> Column:
    """Return the record of a row of folded or merged states, with the types of a state record: state, then the position.

    The fields of a state that cannot be written are null.
    """
    is_written = ~has_failed(states)
    state = struct(*(when(is_written, col(f.name).cast(f.dataType)).alias(f.name) for f in target.state_type))
    position = (col(name).cast(target.position_type[name]).alias(name) for name in POSITION_COLUMNS)
    return struct(state.alias("state"), *position)
