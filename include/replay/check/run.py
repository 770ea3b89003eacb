"""Runs a check with DuckDB.

1. Determine the cut, the current end offsets of the source. Open the stores once the lake contains the live version. Read the events below the
   cut.
2. Read each store. A record is compared as of its own position, so nothing has to be stopped for the check.
3. Read live stores again while keys are behind the cut, until they reach it or the wait ends: an event in flight is not a fault.
4. Read the events since the cut, which the stores may contain, and replay the log up to each stored position.
5. Evaluate the expectations, and list the failures.
6. If all are met, keep the replayed records, from which incremental checks go on.

An incremental check reads the events since the stores were verified, and the records of their keys.
"""

import logging
import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

import duckdb

from include.lake.tables import staging_path, table_path
from include.position import Offsets
from include.quality.check import (
    CheckRequest,
    CheckResult,
    FullCheckNeededError,
    Mode,
    StoreName,
)
from include.replay.check.changelog_store import ChangelogStore
from include.replay.check.comparison import (
    KEY_CRC,
    add_functions,
    create_absences,
    create_comparison,
    create_log_keys,
    create_replayed,
    create_replicas,
    create_required,
    cuts_of,
    late_places,
    require_types,
    require_written,
)
from include.replay.check.delta_store import DeltaStore
from include.replay.check.evaluation import Evaluation
from include.replay.check.event_source import EventSource
from include.replay.check.increment import create_changed, create_changed_log_keys, create_merged
from include.replay.check.key_counts import KeyCounts
from include.replay.check.marks import keep_verified
from include.replay.check.nodes_store import NodesStore
from include.replay.check.state_records import StateRecords
from include.replay.check.stored_records import Reading, Store, StoredRecords
from include.replay.check.target import CheckTarget, OtherEngineError
from include.replay.check.verified_records import VerifiedFile, VerifiedRecords
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
    started_s, started_at = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    try:
        result = _run(settings, request, further)
    except FullCheckNeededError as reason:
        LOG.info("checking all keys, because %s", reason)
        result = replace(
            _run(settings, replace(request, mode=Mode.FULL), further), full_check_reason=str(reason)
        )
    return replace(result, started_at=started_at, duration_s=time.monotonic() - started_s)


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
            check = _Check(target, request, rules, connection, resources)
            wait_s = target.table_wait_s(request, started)
            if check.has_right_tables or time.monotonic() - started_s > wait_s:
                result = check.run()
                if result.passed and further is not None:
                    further.use(connection)
                return result
        number = target.version.number
        LOG.info("version %d is live, but the lake contains another one: reloading both", number)
        time.sleep(POLL_S)


class _Check:
    """One check: its database and its stores."""

    def __init__(
        self,
        target: CheckTarget,
        request: CheckRequest,
        rules: FoldSql,
        connection: duckdb.DuckDBPyConnection,
        resources: ExitStack,
    ) -> None:
        self._target = target
        self._request = request
        self._connection = connection
        self._rules = rules
        self._events = EventSource(connection, target, rules, from_log=request.from_log)
        records = StateRecords(target.settings, target.model, target.version.fold_revision)
        self._stored = StoredRecords(connection, records)
        self._stores: list[Store] = []
        for name in request.stores:
            self._stores.append(_store(name, target, self._stored))
            resources.callback(self._stores[-1].close)
        self._file = VerifiedFile(target, tuple(rules.record))
        self._verified: VerifiedRecords | None = None
        self._read_until = target.cut
        self._is_required = False

    @property
    def has_right_tables(self) -> bool:
        """Whether every table contains the version to check."""
        tables = (store for store in self._stores if isinstance(store, DeltaStore))
        return all(table.tag.version == self._target.version.number for table in tables)

    def run(self) -> CheckResult:
        """Return the result, without its start and duration."""
        target, request, connection = self._target, self._request, self._connection
        what = f"{target.model.name} v{target.version.number} with DuckDB, {request.mode}: {', '.join(request.stores)}"
        LOG.info("checking %s, up to offsets %s", what, dict(target.cut))
        counts = KeyCounts(self._stores) if request.mode is not Mode.FULL else None
        require_types(connection, self._rules)
        if request.mode is Mode.INCREMENTAL:
            self._verified = self._file.read(connection, request.stores)
            self._require_continued(self._verified)
            self._events.read_log(self._verified.since, target.cut)
            self._limit_to_changed()
        else:
            self._limit_to_sample(counts)
            self._events.read_all(target.cut)
        readings = [self._read(store) for store in self._stores]
        cuts = cuts_of(replica for reading in readings for replica in reading.replicas)
        create_replicas(connection, (replica for reading in readings for replica in reading.replicas), cuts)
        self._wait_for_late(cuts)
        self._read_later_events(cuts)
        self._replay()
        create_comparison(connection, self._rules)
        evaluation = Evaluation(
            connection,
            target,
            request,
            self._rules,
            list(zip(self._stores, readings, strict=True)),
            cuts,
            counts,
            self._verified,
        )
        result = replace(evaluation.result(), event_sources=self._events.description)
        if not result.passed or request.mode is Mode.SAMPLE or self._file.fingerprint is None:
            return result
        return replace(result, verified=keep_verified(evaluation, self._file))

    def _limit_to_sample(self, counts: KeyCounts | None) -> None:
        """Compare about as many keys as the setting says in a check of a sample, different ones in each run."""
        if self._request.mode is Mode.SAMPLE and counts is not None:
            sample = counts.sample(self._request.run_id, self._target.settings.quality.sample_keys)
            self._stored.sample = sample
            self._stored.condition = f"{KEY_CRC}(key) % {sample.buckets} = {sample.bucket}"

    def _limit_to_changed(self) -> None:
        """Compare only keys with events since they were verified."""
        number = create_changed(self._connection)
        LOG.info("%d keys have events since they were verified", number)
        self._connection.execute("CREATE TABLE compared AS SELECT key FROM changed")
        self._stored.condition = "key IN (SELECT key FROM compared)"
        if number <= KEYS_IN_MEMORY:
            rows = self._connection.execute("SELECT key FROM compared").fetchall()
            self._stored.keys = [key for (key,) in rows]

    def _require_continued(self, verified: VerifiedRecords) -> None:
        if verified.since.keys() != self._target.cut.keys() or not self._target.cut.covers(verified.since):
            raise FullCheckNeededError(
                "the source topic has other partitions or fewer events than were verified"
            )

    def _read_later_events(self, cuts: list[Offsets]) -> None:
        """Read the events since the last ones that were read, which the stores may contain."""
        until = self._target.ends()
        number = self._events.read_log(self._read_until, until)
        self._read_until = until
        if self._is_required and not number:
            return
        if self._verified is not None:
            create_changed(self._connection)
        self._require(cuts)

    def _read(self, store: Store) -> Reading:
        started_s = time.monotonic()
        reading = store.read()
        LOG.info("%s: read in %.1f s", store.name, time.monotonic() - started_s)
        if self._verified is None:
            return reading
        since = self._verified.marks[str(store.name)].verified_up_to
        if not all(replica.cut.covers(since) for replica in reading.replicas):
            raise FullCheckNeededError(
                f"the {store.name} was replaced by one that is complete up to lower offsets"
            )
        return replace(reading, replicas=tuple(replace(replica, since=since) for replica in reading.replicas))

    def _require(self, cuts: list[Offsets]) -> None:
        """Create the tables of what the replicas must have, given the events that were read."""
        partitions = len(self._target.cut)
        if self._verified is None:
            create_log_keys(self._connection, self._target.model, cuts, partitions)
        else:
            create_changed_log_keys(self._connection, cuts, partitions, self._verified.since)
        create_required(self._connection, cuts, self._stored.condition)
        create_absences(self._connection, self._target.model, self._rules, self._target.settings.stream)
        self._is_required = True

    def _replay(self) -> None:
        """Replay the events; raises OtherEngineError for a state that cannot be written, which Spark leaves out."""
        model, revision = self._target.model, self._target.version.fold_revision
        try:
            if self._verified is None:
                create_replayed(self._connection, self._rules)
            else:
                merge = merge_sql(model, revision)
                assert merge is not None  # noqa: S101 - records that cannot be merged are not kept
                create_merged(self._connection, self._rules, merge)
        except (duckdb.ConversionException, duckdb.OutOfRangeException) as error:
            raise OtherEngineError(f"a state is out of the range of its record: {error}") from error
        require_written(self._connection, model, revision)

    def _wait_for_late(self, cuts: list[Offsets]) -> None:
        """Read the replicas again that lack a required event, until they have it or the wait ends."""
        live = {str(store.name): store for store in self._stores if store.may_catch_up}
        if not live:
            return
        self._require(cuts)
        deadline_s = time.monotonic() + self._target.settings.quality.wait_s
        while late := late_places(self._connection, live):
            if self._target.model.items_leave:
                # A later event may have ended an item that a replica lacks.
                self._read_later_events(cuts)
                late = late_places(self._connection, live)
            if not late or time.monotonic() > deadline_s:
                return
            LOG.info("behind the cut, read again: %s", ", ".join(late))
            time.sleep(POLL_S)
            for store in live.values():
                store.reread(late)


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
