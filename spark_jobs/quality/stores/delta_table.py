"""A Delta table as a store: reads one version of the table; the tag of its newest tagged commit has the cut."""

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import col, lit

from include.declarations.event_types.event_columns import OFFSET, PARTITION
from include.declarations.read_model import KEY_COLUMN
from include.lake.tagged_table import NewestTag
from include.lake.tags import CommitTag
from include.position import Offsets
from include.quality.check import QualityError, StoreName, TableMissingError
from include.replay.check.readings import Reading, Replica
from spark_jobs.lake.spark_table import newest_tag_of, table_history
from spark_jobs.quality.session import CheckSession
from spark_jobs.quality.source_log import MODEL_KEY
from spark_jobs.quality.stores.base import StoredFrames, of_pairs
from spark_jobs.quality.target import Target


class DeltaStore:
    """A table of state records whose commits carry a tag (include.lake.tags.CommitTag)."""

    def __init__(
        self, name: StoreName, session: CheckSession, target: Target, path: str, stored: StoredFrames
    ) -> None:
        self.name = name
        self._stored = stored
        self._session = session
        self._target = target
        self._path = path
        # The whole check uses one version of the table and its tag, while compaction and promotion continue.
        newest = self._newest()
        self._version, self._tag = newest.delta_version, newest.tag

    def _newest(self) -> NewestTag[CommitTag]:
        """Return the newest version of the table, and the newest tag up to it."""
        spark, path = self._session.spark, self._path
        newest = newest_tag_of(spark, path, CommitTag.from_json)
        if newest is not None:
            return newest
        commits = table_history(spark, path, CommitTag.from_json)
        message = f"No commit of {path} has a tag of Foldlake: find out which program wrote the table."
        if not commits:
            raise TableMissingError.of(path, self.name, self._target.model.name)
        if [commit.delta_version for commit in commits] == [0]:
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

    def read(self) -> Reading:
        """Add the table's rows as the records of one replica, whose cut is in its tag."""
        target, tag, place = self._target, self._tag, str(self.name)
        self._stored.add(self.name, self._stored.compared(target.types.stored(lit(place), self._table())))
        faults: tuple[str, ...] = ()
        if tag.version != target.version.number:
            mismatch = f"the {self.name} holds version {tag.version}, not version {target.version.number}"
            faults = (f"{mismatch}: it has not been promoted yet, or was rolled back",)
        notes = (f"{self.name}: read as of version {self._version} of the Delta table",)
        return Reading((Replica(place, place, tag.complete_up_to),), faults, notes, self._version)

    def current(self, late: DataFrame) -> DataFrame:
        """Return the records of these keys, which are unchanged."""
        return of_pairs(self._target.types.stored(lit(str(self.name)), self._table()), late)

    def lag_s(self, complete_up_to: Offsets) -> float:
        """Return how long ago the oldest event that is missing in the table was appended.

        The tag gives an upper bound: it has the offsets that the stream had committed, which may trail the rows, because the
        stream commits at intervals and not when it is stopped. If that bound is too old, the rows are searched instead.
        """
        if self.name is not StoreName.LAKE:
            return 0.0  # a staging table does not follow the log
        session, cut, since = self._session, self._target.cut, complete_up_to
        at_most_s = session.log.age_beyond_s(since, cut)
        if at_most_s <= session.settings.quality.max_lake_age_s:
            return at_most_s
        lost = self._target.lost
        since = Offsets({p: max(since.of(p), lost.get(p, 0)) for p in cut})
        missing = session.log.read(partial(_first_missing, self._table()), cut, since)
        return session.log.age_beyond_s(missing, Offsets({p: cut[p] for p in missing}))

    def close(self) -> None:
        """Do nothing: the store has no resources."""

    def _table(self) -> DataFrame:
        reader = self._session.spark.read.format("delta").option("versionAsOf", self._version)
        return reader.load(self._path)


def _first_missing(rows: DataFrame, events: DataFrame) -> Offsets:
    """Return, for each partition with missing events, the offset of the first of these events that is in none of the rows.

    rows: of a table with key and source_offset; a row contains its key's events up to that offset.
    """
    stored = rows.select(col(KEY_COLUMN).alias("stored_key"), col("source_offset").alias("stored_offset"))
    found = (
        events.select(MODEL_KEY, col(PARTITION).alias("partition"), col(OFFSET).alias("offset"))
        .join(stored, col(MODEL_KEY) == col("stored_key"), "left")
        .where(col("stored_offset").isNull() | (col("stored_offset") < col("offset")))
        .groupBy("partition")
        .agg(F.min("offset").alias("first"))
        .collect()
    )
    return Offsets({row.partition: row["first"] for row in found})
