"""A check with Spark: the replay of the log, for the steps that both engines share (include/replay/check/check.py).

One pass over the events computes what each stored record must be, how far each key must have got, and which keys must exist. It is repeated
if records are read again that were behind the cut.
"""

import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.functions import col

from include.declarations.event_types.event_columns import KEY, OFFSET, PARTITION
from include.nodes.record_requests import KeySample
from include.position import Offsets
from include.quality.check import CheckRequest
from include.replay.check.check import Check
from include.replay.check.comparison import (
    ALL_EVENTS,
    LACKING,
    LACKING_POSITIONS,
    POSITIONS,
    create_absences,
    create_no_absences,
    create_required,
    drop_absences,
)
from include.replay.check.increment import create_based, create_changed, create_changed_log_keys
from include.replay.check.readings import Store
from include.replay.event_relation import EVENTS
from include.replay.fold_sql import duckdb_types
from include.words import plural
from spark_jobs.folding.expressions.columns import without_short_names
from spark_jobs.folding.written_states import FAILED
from spark_jobs.quality.log_replay import fold_log
from spark_jobs.quality.merging import merged_records, require_records
from spark_jobs.quality.session import CheckSession
from spark_jobs.quality.source_log import MODEL_KEY
from spark_jobs.quality.stores.base import FrameStore, StoredFrames
from spark_jobs.quality.tables import SparkTables
from spark_jobs.quality.target import Target
from spark_jobs.quality.verified_table import VerifiedTable

LOG = logging.getLogger("foldlake.quality")
# Up to this number of events on the log, its queries are of few rows.
SMALL_LOG_EVENTS = 50_000


class SparkCheck(Check):
    """A check with Spark."""

    tables: SparkTables
    target: Target
    stores: Sequence[FrameStore]

    def __init__(
        self,
        session: CheckSession,
        tables: SparkTables,
        target: Target,
        request: CheckRequest,
        stored: StoredFrames,
        stores: Sequence[FrameStore],
        resources: ExitStack,
    ) -> None:
        types = duckdb_types(target.model.state_schema_of(target.version.fold_revision))
        fields = {name: types[name] for name in target.types.fields}
        super().__init__(tables, target, request, fields, stores, VerifiedTable(session, tables, target))
        self._session = session
        self._stored = stored
        self._resources = resources
        self._events = 0
        self._read_until = target.cut
        self._is_replayed = False
        self._since_verified: DataFrame | None = None

    @property
    def events(self) -> int:
        """See Check."""
        return self._events

    def read_all(self, sample: KeySample) -> None:
        """Do nothing but to note the sample: the events are read when they are folded."""
        self._stored.sample = sample
        self._size(Offsets(), is_incremental=False)

    def read_since(self, since: Offsets) -> None:
        """See Check."""
        self._size(since, is_incremental=True)
        self._read_events(since, self.target.cut)

    def limit_to(self, number: int) -> None:
        """See Check."""
        self._stored.keys, self._stored.number = self.tables["compared"], number

    def reread(self, stores: Sequence[Store]) -> None:
        """Read the records again that are or were late."""
        self._stored.reread([store for store in self.stores if store in stores])
        self._is_replayed = False

    def require(self) -> None:
        """See Check; the replay is for what is stored now."""
        # These ends are beyond every stored position, because the stores were read before.
        until = self.target.ends()
        if self.verified is None:
            self._fold(until)
        else:
            self._merge(until)
        self._is_replayed = True

    def require_again(self) -> None:
        """See Check."""
        drop_absences(self.tables)

    def replay(self) -> None:
        """See Check."""
        if not self._is_replayed:
            self.require()

    def _size(self, since: Offsets, *, is_incremental: bool) -> None:
        """Run all queries from now on as those of few rows, if they are."""
        is_small = since.events_until(self.target.cut) <= SMALL_LOG_EVENTS
        self._resources.enter_context(self._session.sized(is_small=is_small, is_incremental=is_incremental))

    def _fold(self, until: Offsets) -> None:
        """Fold the whole log."""
        tables, model = self.tables, self.target.model
        started_s = time.monotonic()
        positions = (
            tables["stored"]
            .groupBy("key")
            .agg(F.sort_array(F.collect_set("source_offset")).alias("positions"))
        )
        tables["folded"], self._events = self._folded(positions, self._stored.count, until)
        LOG.info("replayed %s events in %.1f s", f"{self._events:,}", time.monotonic() - started_s)
        tables["replayed"] = tables.query(
            "SELECT key, position, record AS replayed FROM folded WHERE position IS NOT NULL"
        )
        numbers = "".join(
            f", max(last_{i}) AS last_{i}, sum(count_{i}) AS count_{i}" for i in range(len(self.cuts))
        )
        tables.create(
            "log_keys",
            f"SELECT key, max(partition) AS partition{numbers} FROM folded GROUP BY key",
            len(self.target.cut),
        )
        create_required(tables, self.cuts, self._stored.condition)
        create_no_absences(tables)
        can_fail = "failed" in tables["folded"].columns
        has_failed = can_fail and bool(tables.rows("SELECT 1 FROM folded WHERE failed IS NOT NULL LIMIT 1"))
        if model.items_leave or has_failed:
            failed = "failed" if can_fail else "CAST(NULL AS VARCHAR)"
            tables["ends"] = tables.query(
                f"SELECT key, position, has_ended, item_time, {failed} IS NOT NULL AS has_failed FROM folded"
            )
            create_absences(tables, model.expires, self.target.settings.stream)
            if has_failed:
                tables["unwritten"] = tables.query(
                    f"SELECT key, position, failed FROM folded WHERE failed IS NOT NULL AND position = {ALL_EVENTS}"
                )
            drop_absences(tables)
        if can_fail and tables.rows(f"SELECT 1 FROM {LACKING} LIMIT 1"):
            self._allow_unwritten(until)

    def _allow_unwritten(self, until: Offsets) -> None:
        """Remove from `required` the keys that a replica lacks, and whose state cannot be written.

        Another event can change that. Whether a replica may lack the key depends on how far it has read: the log is folded once more for these
        keys, up to where the replica must have read them. It may have read more than it must, and also lack a key whose state cannot be written
        after all events.
        """
        tables = self.tables
        lacking = self._session.keep(
            tables.query(f"SELECT DISTINCT key, position FROM ({LACKING_POSITIONS}) AS found")
        )
        number = lacking.count()
        positions = lacking.groupBy("key").agg(F.sort_array(F.collect_set("position")).alias("positions"))
        folded, _ = self._folded(positions, number, until, lacking)
        failed = folded.where(col("failed").isNotNull() & col("position").isNotNull())
        found = tables["unwritten"].unionByName(failed.select("key", "position", "failed"))
        tables["unwritten"] = self._session.keep(found)
        drop_absences(tables)

    def _folded(
        self, positions: DataFrame, number: int, until: Offsets, only: DataFrame | None = None
    ) -> tuple[DataFrame, int]:
        total = self.target.model.starts.events_until(until)
        with self._session.reading("replaying the log", "events", total):
            return fold_log(self._session, self.target, positions, number, self.cuts, until, only)

    def _merge(self, until: Offsets) -> None:
        """Merge the verified records with the events since."""
        tables, verified = self.tables, self.verified
        assert verified is not None  # noqa: S101 - the check is incremental
        if not self._read_until.covers(until):
            self._read_events(self._read_until, until)
            create_changed(tables)
        create_changed_log_keys(tables, self.cuts, len(self.target.cut), verified.since)
        create_required(tables, self.cuts, self._stored.condition)
        # A read model with a merge has no items that end.
        create_no_absences(tables)
        merged = self._merged(POSITIONS)
        tables["replayed"] = merged.select("key", "position", "replayed")
        if FAILED in merged.columns and tables.rows(f"SELECT 1 FROM {LACKING} LIMIT 1"):
            self._merged(LACKING_POSITIONS)

    def _merged(self, positions: str) -> DataFrame:
        """Return the merged records of some positions; raises FullCheckNeededError if one of them cannot be written."""
        tables = self.tables
        assert self._since_verified is not None  # noqa: S101 - the check is incremental
        create_based(tables, positions)
        merged = merged_records(self.target, tables["based"], tables["base"], self._since_verified)
        merged = self._session.keep(merged)
        require_records(merged)
        return merged

    def _read_events(self, since: Offsets, until: Offsets) -> None:
        """Add events to `events`, those since the stores were verified."""

        def read(events: DataFrame) -> tuple[DataFrame, int]:
            kept = self._session.keep(without_short_names(events, self.target.model.event_schemas))
            return kept, kept.count()

        found, number = self._session.log.read(read, until, since)
        LOG.info("%s since offsets %s", plural(number, "event"), dict(since))
        self._events += number
        self._read_until = self._read_until.merge(until)
        before = self._since_verified
        self._since_verified = found if before is None else before.unionByName(found)
        self.tables[EVENTS] = self._since_verified.select(
            col(MODEL_KEY).alias("key"),
            PARTITION,
            OFFSET,
            (F.decode(KEY, "UTF-8") == col(MODEL_KEY)).alias("is_source_key"),
        )
