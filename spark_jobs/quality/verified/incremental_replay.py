"""The replay of an incremental check: verified records, merged with the fold of the events since."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import col, lit

from include.declarations.event_types.event_columns import KEY, OFFSET, PARTITION
from include.position import SOURCE_OFFSET, Offsets
from include.quality.check import FullCheckNeededError, StoreName
from spark_jobs.folding.event_rules import partition_of_key
from spark_jobs.folding.expressions.columns import without_short_names
from spark_jobs.folding.lifetimes import HAS_ENDED
from spark_jobs.folding.written_states import FAILED
from spark_jobs.quality.log_replay import ALL_EVENTS, Replay, below
from spark_jobs.quality.session import CheckSession
from spark_jobs.quality.source_log import MODEL_KEY
from spark_jobs.quality.stores.base import Reading, Store, StoreReplica
from spark_jobs.quality.target import Target
from spark_jobs.quality.verified.merging import merged_records, require_records
from spark_jobs.quality.verified.table import VerifiedRecords

LOG = logging.getLogger("foldlake.quality")


@dataclass(frozen=True)
class _KeyCounts:
    """The number of keys with events since, by partition of the key: `all`, and `below_<i>` for those with an event below a cut."""

    cuts: tuple[Offsets, ...]
    rows: Sequence[Mapping[str, int]]

    def below(self, cut: Offsets | None) -> dict[int, int]:
        """Return key partition -> number of these keys with an event below one of the cuts; of all keys for None."""
        column = "all" if cut is None else f"below_{self.cuts.index(cut)}"
        return {row["key_partition"]: row[column] for row in self.rows}


class IncrementalReplay:
    """The events since the stores were verified, and the verified records of their keys.

    Raises FullCheckNeededError when the log does not continue what was verified.
    """

    def __init__(self, session: CheckSession, target: Target, verified: VerifiedRecords) -> None:
        self._session = session
        self._target = target
        self.verified = verified
        self.marks = verified.marks
        self.since = verified.since
        if self.since.keys() != target.cut.keys() or not target.cut.covers(self.since):
            raise FullCheckNeededError(
                "the source topic has other partitions or fewer events than were verified"
            )
        self._until = target.cut
        self._number = 0
        self._counted: _KeyCounts | None = None
        self._events = self._read(self.since, target.cut)
        self.changed = session.keep(self._events.select(col(MODEL_KEY).alias("key")).distinct())
        self.changed_keys = self.changed.count()
        LOG.info("%d keys have events since they were verified", self.changed_keys)

    def replay(
        self, positions: DataFrame, cuts: Sequence[Offsets], until: Offsets, only: DataFrame | None
    ) -> Replay:
        """Return the replay of the changed keys, with the columns of a replay of the whole log (see Replay).

        Raises FullCheckNeededError for a record that is older than the verified ones of its key, which must be replayed from the
        first event.
        """
        self._extend(until)
        keys = self.changed
        if only is not None:
            keys = keys.join(F.broadcast(only.select("key").distinct()), "key", "left_semi")
        wanted = (
            keys.join(positions, "key", "left")
            .select("key", F.explode_outer("positions").alias("asked"))
            .withColumn("position", F.coalesce("asked", lit(ALL_EVENTS)))
        )
        known = (*cuts, *(mark.verified_up_to for mark in self.marks.values()))
        facts = self._session.keep(self._facts(known))
        if self._counted is None:
            self._counted = self._count(facts, known)
        based = self._session.keep(self._based(wanted))
        self._require_base(based, facts)
        merged = self._session.keep(merged_records(self._target, based, self._events))
        require_records(merged)
        newest = merged.groupBy("key").agg(F.max_by("record", "position").alias("newest"))
        found = facts.join(keys, "key", "left_semi").join(newest, "key", "left")
        # A read model with a merge has no items that end.
        stays = lit(False).alias(HAS_ENDED)  # noqa: FBT003 - a column
        can_fail = FAILED in merged.columns
        failure = [lit(None).cast("string").alias(FAILED)] if can_fail else []
        records = merged.where(col("position") != ALL_EVENTS)
        records = records.select("key", "position", "record", stays, *failure)
        facts = found.select("key", "last", "count", "partition", "newest", stays, *failure)
        return Replay(facts, records, self._number, len(until), known, can_fail)

    def read(self, store: Store) -> Reading:
        """Read the keys of a store that have events since it was verified.

        Raises FullCheckNeededError if the store need not contain everything that it contained then.
        """
        since = self.marks[str(store.name)].verified_up_to
        changed, number = self.changed, self.changed_keys
        if since != self.since:
            later = self._events.where(~below(since)).select(col(MODEL_KEY).alias("key")).distinct()
            changed = self._session.keep(later)
            number = changed.count()
        reading = store.read_keys(changed, number)
        if not all(replica.cut.covers(since) for replica in reading.replicas):
            raise FullCheckNeededError(
                f"the {store.name} was replaced by one that is complete up to lower offsets"
            )
        return replace(reading, replicas=tuple(replace(replica, since=since) for replica in reading.replicas))

    def key_numbers(
        self, store: StoreName, replicas: Sequence[StoreReplica]
    ) -> tuple[dict[str, int], dict[str, int]]:
        """Return by replica the number of keys that it must have, and the number of keys in the log."""
        cut = replicas[0].cut
        required, known = self.required_keys(store, cut), self._keys(store, None)
        return (
            {replica.name: _of(replica, required) for replica in replicas},
            {replica.name: _of(replica, known) for replica in replicas},
        )

    def required_keys(self, store: StoreName, cut: Offsets) -> dict[int, int]:
        """Return key partition -> number of keys with an event below the cut."""
        return self._keys(store, cut)

    def _keys(self, store: StoreName, cut: Offsets | None) -> dict[int, int]:
        """Return key partition -> number of keys with an event below a cut, or of all keys."""
        assert self._counted is not None  # noqa: S101 - the replay counts
        mark = self.marks[str(store)]
        before, until = self._counted.below(mark.verified_up_to), self._counted.below(cut)
        return {p: mark.keys.get(p, 0) + until.get(p, 0) - before.get(p, 0) for p in {*mark.keys, *until}}

    def _count(self, facts: DataFrame, cuts: Sequence[Offsets]) -> "_KeyCounts":
        counted = (
            facts.withColumn(
                "key_partition", partition_of_key(col("key").cast("binary"), len(self._target.cut))
            )
            .groupBy("key_partition")
            .agg(
                F.count("*").alias("all"),
                *(F.count_if(F.get("count", lit(i)) > 0).alias(f"below_{i}") for i in range(len(cuts))),
            )
            .collect()
        )
        return _KeyCounts(tuple(cuts), [row.asDict() for row in counted])

    def _read(self, since: Offsets, until: Offsets) -> DataFrame:
        def read(events: DataFrame) -> tuple[DataFrame, int]:
            kept = self._session.keep(without_short_names(events, self._target.model.event_schemas))
            return kept, kept.count()

        kept, number = self._session.log.read(read, until, since)
        self._number += number
        LOG.info("%s events since offsets %s", f"{number:,}", dict(since))
        return kept

    def _extend(self, until: Offsets) -> None:
        """Read the events up to these offsets, too: records that were read later may contain them."""
        if self._until.covers(until):
            return
        later = self._read(self._until, until)
        self._events = self._events.unionByName(later)
        self._until = self._until.merge(until)
        self.__dict__.pop("rows", None)

    @cached_property
    def rows(self) -> DataFrame:
        """The verified rows of all keys with events: key, offset, count, base (the row)."""
        keys = self._events.select(col(MODEL_KEY).alias("key")).distinct()
        rows = self.verified.rows.join(F.broadcast(keys), "key", "left_semi")
        fields = [name for name in self.verified.rows.columns if name != "key"]
        return self._session.keep(
            rows.select("key", col(SOURCE_OFFSET.name).alias("base_offset"), F.struct(*fields).alias("base"))
        )

    def _facts(self, cuts: Sequence[Offsets]) -> DataFrame:
        """Return a row for each key with events since: key, last, count, partition (see Replay), earlier.

        earlier: number of the key's events before these.
        """
        is_before = below(self.since, partition="base.source_partition", offset="base_offset")
        row = F.struct("base_offset", "base.event_count")
        rows = self.rows.groupBy("key").agg(
            # The newest one below these events contains all events before them.
            F.coalesce(
                F.max_by(row, F.when(is_before, col("base_offset"))), F.min_by(row, "base_offset")
            ).alias("row"),
            F.greatest(F.min("base_offset"), F.max(F.when(is_before, col("base_offset")))).alias("reached"),
            F.max("base.source_partition").alias("base_partition"),
        )
        events = self._events.select(MODEL_KEY, KEY, PARTITION, OFFSET)
        joined = events.join(rows.withColumnRenamed("key", MODEL_KEY), MODEL_KEY, "left")
        grouped = (
            joined.groupBy(col(MODEL_KEY).alias("key"))
            .agg(
                F.array(*(F.max(F.when(below(cut), col(OFFSET))) for cut in cuts)).alias("read"),
                F.array(*(F.count_if(below(cut)) for cut in cuts)).alias("new"),
                (F.first("row.event_count") - F.count_if(col(OFFSET) <= col("row.base_offset"))).alias(
                    "missed"
                ),
                F.first("reached").alias("reached"),
                F.max(PARTITION).alias("partition"),
                F.min(F.least(PARTITION, "base_partition")).alias("lowest_partition"),
                F.bool_and(F.decode(KEY, "UTF-8") == col(MODEL_KEY)).alias("is_source_key"),
            )
            .withColumn("earlier", F.coalesce("missed", lit(0)))
        )
        # Of the events before, it is only known that every record contains those up to a row.
        reached = F.when(col("earlier") > 0, col("reached"))
        return grouped.select(
            "key",
            F.transform("read", lambda offset: F.greatest(offset, reached)).alias("last"),
            F.transform("new", lambda number: number + col("earlier")).alias("count"),
            "partition",
            "earlier",
            (~col("is_source_key") & (col("lowest_partition") != col("partition"))).alias("mixed"),
        )

    def _based(self, wanted: DataFrame) -> DataFrame:
        """Return key, asked, position, base: the newest row at or below the position."""
        rows = self.rows.select(col("key").alias("row_key"), "base_offset", "base")
        reached = (col("key") == col("row_key")) & (col("base_offset") <= col("position"))
        return (
            wanted.join(rows, reached, "left")
            .groupBy("key", "asked", "position")
            .agg(F.max_by("base", "base_offset").alias("base"))
        )

    def _require_base(self, based: DataFrame, facts: DataFrame) -> None:
        row = (
            facts.join(based, "key", "left")
            .agg(
                F.count_if(col("asked").isNotNull() & col("base").isNull() & (col("earlier") > 0)).alias(
                    "older"
                ),
                F.count_if(col("earlier") < 0).alias("contradicted"),
                F.count_if("mixed").alias("mixed"),
            )
            .first()
        )
        if row is None:
            return
        if row.mixed:
            raise FullCheckNeededError(f"{row.mixed:,} keys have events in several source partitions")
        if row.contradicted:
            raise FullCheckNeededError(
                f"the log has fewer events of {row.contradicted:,} keys than were verified"
            )
        if row.older:
            raise FullCheckNeededError(
                f"{row.older:,} records are older than they were when they were verified"
            )


def _of(replica: StoreReplica, keys: Mapping[int, int]) -> int:
    return sum(keys.values()) if replica.key_partition is None else keys.get(replica.key_partition, 0)
