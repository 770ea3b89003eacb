"""Runs a check with DuckDB: see include/replay/check/check.py.

The events below the cut are read before the stores, and those since, which the stores may contain, before the replay.
"""

import logging
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

import duckdb

from include.lake.tables import staging_path, table_path
from include.nodes.record_requests import KeySample
from include.position import Offsets
from include.quality.check import CheckRequest, CheckResult, StoreName
from include.replay.check.check import Check, full_if_needed
from include.replay.check.comparison import (
    LACKING,
    LACKING_POSITIONS,
    POSITIONS,
    create_absences,
    create_no_absences,
    create_required,
    drop_absences,
)
from include.replay.check.event_source import EventSource
from include.replay.check.increment import (
    create_based,
    create_changed,
    create_changed_log_keys,
    create_merged,
)
from include.replay.check.log_replay import (
    KEY_CRC,
    add_functions,
    create_ends,
    create_log_keys,
    create_replayed,
    require_types,
    require_written,
)
from include.replay.check.readings import Store
from include.replay.check.stores.changelog import ChangelogStore
from include.replay.check.stores.delta_table import DeltaStore
from include.replay.check.stores.nodes import NodesStore
from include.replay.check.stores.state_records import StateRecords
from include.replay.check.stores.stored_records import StoredRecords
from include.replay.check.tables import DuckDbTables
from include.replay.check.target import CheckTarget, OtherEngineError
from include.replay.check.verified_file import VerifiedFile
from include.replay.database import check_database
from include.replay.event_relation import EventUse
from include.replay.fold_sql import FoldSql, fold_sql, merge_sql
from include.settings import Settings

LOG = logging.getLogger("foldlake.quality")
POLL_S = 0.5
# Of more keys, the records are chosen by the database.
KEYS_IN_MEMORY = 100_000


def run_check(settings: Settings, request: CheckRequest, further: EventUse | None = None) -> CheckResult:
    """Run a check and return the result; if it passed, keep what it has verified for incremental checks.

    Where an incremental check is not possible, all keys are checked. further: uses the events once the check has passed.

    Raises OtherEngineError and NotTranslatedError where Spark must check. Raises FoldlakeError when the check cannot complete: QualityError,
    KafkaUnavailableError, RegistryUnavailableError; and UncheckableError when the read model cannot be checked at all.
    """
    return full_if_needed(request, lambda asked: _run(settings, asked, further))


def _run(settings: Settings, request: CheckRequest, further: EventUse | None) -> CheckResult:
    started, started_s = datetime.now(UTC), time.monotonic()
    while True:
        target = CheckTarget.of(settings, request)
        if "://" in settings.lake_root.removeprefix("file://"):
            raise OtherEngineError("the lake is not on a file system of this machine")
        rules = fold_sql(target.model, target.version.fold_revision)
        if further is not None:
            rules = replace(rules, columns=rules.columns | further.columns)
        with ExitStack() as resources:
            connection = resources.enter_context(check_database(settings))
            add_functions(connection)
            check = DuckDbCheck.opened(target, request, rules, DuckDbTables(connection), resources)
            wait_s = target.table_wait_s(request, started)
            if check.has_right_tables or time.monotonic() - started_s > wait_s:
                result = check.run()
                if result.passed and further is not None:
                    further.use(connection, result.event_sources)
                return result
        number = target.version.number
        LOG.info("version %d is live, but the lake contains another one: reloading both", number)
        time.sleep(POLL_S)


class DuckDbCheck(Check):
    """A check with DuckDB."""

    tables: DuckDbTables

    def __init__(
        self,
        tables: DuckDbTables,
        target: CheckTarget,
        request: CheckRequest,
        rules: FoldSql,
        stored: StoredRecords,
        stores: Sequence[Store],
    ) -> None:
        fields = {name: rules.types[name] for name in rules.record}
        kept = VerifiedFile(tables, target, tuple(fields))
        super().__init__(tables, target, request, fields, stores, kept)
        self._rules = rules
        self._stored = stored
        self._source = EventSource(
            tables.connection,
            target.settings,
            target.model,
            rules,
            is_whole=not target.lost,
            from_log=request.from_log,
        )
        self._read_until = target.cut
        self._is_required = False
        require_types(tables.connection, rules)

    @classmethod
    def opened(
        cls,
        target: CheckTarget,
        request: CheckRequest,
        rules: FoldSql,
        tables: DuckDbTables,
        resources: ExitStack,
    ) -> "DuckDbCheck":
        """Open the stores of a check; raises QualityError and OtherEngineError."""
        records = StateRecords(target.settings, target.model, target.version.fold_revision)
        stored = StoredRecords(tables.connection, records)
        stores: list[Store] = []
        for name in request.stores:
            stores.append(_store(name, target, stored))
            resources.callback(stores[-1].close)
        return cls(tables, target, request, rules, stored, stores)

    @property
    def has_right_tables(self) -> bool:
        """Whether every table contains the version to check."""
        found = (store for store in self.stores if isinstance(store, DeltaStore))
        return all(table.tag.version == self.target.version.number for table in found)

    @property
    def events(self) -> int:
        """See Check."""
        return self._source.number

    @property
    def event_sources(self) -> str:
        """See Check."""
        return self._source.description

    def read_all(self, sample: KeySample) -> None:
        """See Check."""
        if sample.buckets > 1:
            self._stored.sample = sample
            self._stored.condition = f"{KEY_CRC}(key) % {sample.buckets} = {sample.bucket}"
        self._source.read_all(self.target.cut)

    def read_since(self, since: Offsets) -> None:
        """See Check."""
        self._source.read_log(since, self.target.cut)

    def limit_to(self, number: int) -> None:
        """See Check."""
        self._stored.condition = "key IN (SELECT key FROM compared)"
        if number <= KEYS_IN_MEMORY:
            self._stored.keys = [key for (key,) in self.tables.rows("SELECT key FROM compared")]

    def reread(self, stores: Sequence[Store]) -> None:
        """Read the whole replicas of late records again."""
        late = [place for (place,) in self.tables.rows("SELECT DISTINCT place FROM late")]
        for store in stores:
            if isinstance(store, ChangelogStore | NodesStore):
                store.reread(late)

    def require(self) -> None:
        """See Check."""
        partitions, model = len(self.target.cut), self.target.model
        if self.verified is None:
            create_log_keys(self.tables, model, self.cuts, partitions)
        else:
            create_changed_log_keys(self.tables, self.cuts, partitions, self.verified.since)
        create_required(self.tables, self.cuts, self._stored.condition)
        create_no_absences(self.tables)
        if model.items_leave:
            create_ends(self.tables, model, self._rules)
            create_absences(self.tables, model.expires, self.target.settings.stream)
            drop_absences(self.tables)
        self._is_required = True

    def require_again(self) -> None:
        """Read the events since the last ones that were read, which the stores may contain."""
        until = self.target.ends()
        number = self._source.read_log(self._read_until, until)
        self._read_until = until
        if self._is_required and not number:
            return
        if self.verified is not None:
            create_changed(self.tables)
        self.require()

    def replay(self) -> None:
        """See Check; raises OtherEngineError for a state that cannot be written, which Spark leaves out."""
        self.require_again()
        self._fold("replayed", POSITIONS)
        if self.tables.rows(f"SELECT 1 FROM {LACKING} LIMIT 1"):
            self._fold("lacking", LACKING_POSITIONS)

    def _fold(self, name: str, positions: str) -> None:
        model, revision = self.target.model, self.target.version.fold_revision
        try:
            if self.verified is None:
                create_replayed(self.tables, name, self._rules, positions)
            else:
                merge = merge_sql(model, revision)
                assert merge is not None  # noqa: S101 - records that cannot be merged are not kept
                create_based(self.tables, positions)
                create_merged(self.tables, name, self._rules, merge)
        except (duckdb.ConversionException, duckdb.OutOfRangeException) as error:
            raise OtherEngineError(f"a state is out of the range of its record: {error}") from error
        require_written(self.tables, name, model, revision)


def _store(name: StoreName, target: CheckTarget, stored: StoredRecords) -> Store:
    lake_root, model = target.settings.lake_root, target.model.name
    match name:
        case StoreName.LAKE:
            return DeltaStore(name, target, table_path(lake_root, model), stored)
        case StoreName.STAGING:
            return DeltaStore(name, target, staging_path(lake_root, model, target.version.number), stored)
        case StoreName.CHANGELOG:
            return ChangelogStore(target, stored)
        case StoreName.NODES:
            return NodesStore(target, stored)
