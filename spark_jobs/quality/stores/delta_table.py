"""A Delta table as a store: reads one version of the table; the tag of its newest tagged commit has the cut."""

from dataclasses import replace

from confluent_kafka import Consumer
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.functions import broadcast, col, lit

from include.declarations.event_types.event_columns import OFFSET, PARTITION
from include.declarations.read_model import KEY_COLUMN
from include.kafka.log_reading import log_consumer
from include.lake.tagged_table import NewestTag
from include.lake.tags import CommitTag
from include.position import Offsets
from include.quality.check import QualityError, StoreName
from include.quality.log_bounds import age_beyond_s, lost_partitions
from include.spark.lake_config import DECODE_ONCE
from spark_jobs.folding.expressions.rules import column_of
from spark_jobs.folding.replay import IdsOf, replayed_events, with_needed_schema_ids
from spark_jobs.lake.spark_table import newest_tag_of, table_history
from spark_jobs.quality.stores.base import FrameSample, Reading, StoreReplica, Target, state_records
from spark_jobs.runtime.session import session_settings

# More keys are joined with a shuffle of the table.
BROADCAST_KEYS = 100_000


class DeltaStore:
    """A table of state records whose commits carry a tag (include.lake.tags.CommitTag)."""

    def __init__(self, name: StoreName, target: Target, path: str) -> None:
        self.name = name
        self._target = target
        self._path = path
        # The whole check uses one version of the table and its tag, while compaction and promotion continue.
        newest = self._newest()
        self._version, self._tag = newest.delta_version, newest.tag

    def _newest(self) -> NewestTag[CommitTag]:
        """Return the newest version of the table, and the newest tag up to it."""
        spark, path = self._target.spark, self._path
        newest = newest_tag_of(spark, path, CommitTag.from_json)
        if newest is not None:
            return newest
        commits = table_history(spark, path, CommitTag.from_json)
        message = f"No commit of {path} has a tag of Foldlake: find out which program wrote the table."
        if not commits:
            message = f"Table {path} does not exist: build the {self.name} of this read model first."
        elif [commit.delta_version for commit in commits] == [0]:
            message = (
                f"Table {path} contains no version yet, because its first compaction has not finished: wait for it, or run "
                f"`./foldlake compact {self._target.model.name}`."
            )
        raise QualityError(message)

    @property
    def version(self) -> int:
        """The version of the read model in the table, according to its tag."""
        return self._tag.version

    @property
    def may_catch_up(self) -> bool:
        """False: the check reads a fixed version of the table."""
        return False

    def key_counts(self) -> dict[str, int]:
        """Return the number of rows."""
        return {str(self.name): self._table().count()}

    def read(self, sample: FrameSample) -> Reading:
        """Return the table's rows as the records of one replica, whose cut is in its tag."""
        target, tag = self._target, self._tag
        rows = self._table()
        replica = StoreReplica(str(self.name), tag.complete_up_to, lag_s=self._lag_s(rows))
        records = state_records(target, lit(replica.name), rows)
        faults: tuple[str, ...] = ()
        if tag.version != target.version.number:
            mismatch = f"the {self.name} holds version {tag.version}, not version {target.version.number}"
            faults = (f"{mismatch}: it has not been promoted yet, or was rolled back",)
        notes = (f"{self.name}: read as of version {self._version} of the Delta table",)
        return Reading((replica,), sample.of(records), faults, notes, self._version)

    def read_keys(self, keys: DataFrame, number: int) -> Reading:
        """Return the rows of some keys."""
        reading = self.read(FrameSample())
        wanted = broadcast(keys) if number <= BROADCAST_KEYS else keys
        return replace(reading, records=reading.records.join(wanted, "key", "left_semi"))

    def reread(self, keys: DataFrame) -> DataFrame:
        """Return the records of these keys, which are unchanged."""
        return self.read(FrameSample()).records.join(
            keys.select("place", "key"), ["place", "key"], "left_semi"
        )

    def close(self) -> None:
        """Do nothing: the store has no resources."""

    def _table(self) -> DataFrame:
        reader = self._target.spark.read.format("delta").option("versionAsOf", self._version)
        return reader.load(self._path)

    def _lag_s(self, rows: DataFrame) -> float:
        """Return how long ago the oldest event that is missing in the table was appended.

        The tag gives an upper bound: it has the offsets that the stream had committed, which may trail the rows, because the
        stream commits at intervals and not when it is stopped. If that bound is too old, the rows are searched instead.
        """
        if self.name is not StoreName.LAKE:
            return 0.0  # a staging table does not follow the log
        target, since = self._target, self._tag.complete_up_to
        topic, cut = target.model.source_topic, target.cut
        consumer = log_consumer(target.settings.kafka.bootstrap_servers)
        try:
            at_most_s = age_beyond_s(consumer, topic, since, cut)
            if at_most_s <= target.settings.quality.max_lake_age_s:
                return at_most_s
            missing = first_missing(target, consumer, rows, since)
            return age_beyond_s(consumer, topic, missing, {p: cut[p] for p in missing})
        finally:
            consumer.close()


def first_missing(target: Target, consumer: Consumer, rows: DataFrame, since: Offsets) -> Offsets:
    """Return, for each partition with missing events, the offset of the first event that is in none of these rows.

    Args:
        target: the target of the check; only events below its cut are considered.
        consumer: reads the beginning offsets of the log.
        rows: rows of a table with key and source_offset; a row contains its key's events up to that offset.
        since: offsets below which all events are known to be in the rows.
    """
    spark, model = target.spark, target.model
    lost = lost_partitions(consumer, model.source_topic, len(target.cut))
    since = Offsets({p: max(since.of(p), lost.get(p, 0)) for p in target.cut})
    stored = rows.select(col(KEY_COLUMN).alias("stored_key"), col("source_offset").alias("stored_offset"))

    def read(ids_of: IdsOf) -> list[Row]:
        events = replayed_events(
            spark,
            target.settings,
            model,
            target.cut,
            since,
            revision=target.version.fold_revision,
            ids_of=ids_of,
        )
        return (
            events.select(
                column_of(model.key).cast("string").alias("model_key"),
                col(PARTITION).alias("partition"),
                col(OFFSET).alias("offset"),
            )
            .join(stored, col("model_key") == col("stored_key"), "left")
            .where(col("stored_offset").isNull() | (col("stored_offset") < col("offset")))
            .groupBy("partition")
            .agg(F.min("offset").alias("first"))
            .collect()
        )

    with session_settings(spark, DECODE_ONCE):
        found = with_needed_schema_ids(read)
    return Offsets({row.partition: row["first"] for row in found})
