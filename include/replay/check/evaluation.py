"""Turns the comparison into a result: evaluates the expectations, lists the failing keys and describes the findings.

SQL counts the rows that break a rule. Great Expectations evaluates the same rules over the rows that break one, and over a row of each
replica: a check of millions of records would not fit into memory otherwise. An incremental check that passes leaves it out: to import it takes
longer than the check.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import duckdb
import pyarrow as pa

from include.lake.sql_tables import quoted as text_literal
from include.position import Offsets
from include.quality.check import (
    LISTED_KEYS,
    NAMED_UNWRITTEN,
    CheckRequest,
    CheckResult,
    ExpectationResult,
    FailingKey,
    Mode,
    QualityError,
    StoreName,
)
from include.replay.check.key_counts import KeyCounts, LogKeyNumbers
from include.replay.check.readings import Reading, Store
from include.replay.check.tables import CheckTables, one_row
from include.replay.check.target import CheckTarget
from include.replay.check.verified import VerifiedRecords
from include.replay.key_expectations import (
    NOT_TRUNCATED,
    RIGHT_STORE,
    SAME_COUNT,
    WHOLE_LOG,
    fresh_within,
    key_expectations,
)
from include.replay.rules import Expectation, quoted
from include.replay.validation import validate
from include.words import plural

# Rows that break a rule and that Great Expectations sees, for each rule and store.
SEEN_ROWS = 10_000
MISSING_SHARES = """SELECT place, CAST(partition AS VARCHAR) AS partition,
           CASE WHEN missing > 1 THEN missing / keys ELSE 0.0 END AS missing_share
    FROM (SELECT place, partition, count(*) AS keys, count(*) FILTER (stored IS NULL) AS missing
          FROM comparison WHERE required_offset IS NOT NULL AND place IN ({places}) GROUP BY ALL) AS partitions"""


@dataclass(frozen=True)
class Evaluation:
    """What is evaluated: the tables of a check, and what its stores have been read as.

    fields: of a record -> its type in DuckDB. events: the number of those that were replayed.
    cuts: those of the replicas. counts: None if all keys are compared. verified: the records from which an incremental check continues.
    """

    tables: CheckTables
    target: CheckTarget
    request: CheckRequest
    fields: Mapping[str, str]
    events: int
    readings: Sequence[tuple[Store, Reading]]
    cuts: Sequence[Offsets]
    counts: KeyCounts | None
    verified: VerifiedRecords | None

    def result(self) -> CheckResult:
        """Return the result, without its start and duration."""
        results = [*self._key_results(), *self._store_results()]
        order = {store: number for number, store in enumerate(self.request.stores)}
        failing, total = self._failing_keys()
        keys, records = self._one("SELECT count(DISTINCT key), count(*) FROM comparison")
        unwritten, named = self._unwritten()
        faults = (fault for _, reading in self.readings for fault in reading.faults)
        return CheckResult(
            request=self.request,
            version=self.target.version.number,
            fold_revision=self.target.version.fold_revision,
            started_at="",
            duration_s=0.0,
            events=self.events,
            keys=keys,
            records=records,
            all_keys=self.counts.all_keys if self.counts else 0,
            expectations=tuple(sorted(results, key=lambda found: order[found.store])),
            failing_keys=failing,
            failing_keys_total=total,
            findings=(*faults, *self._lost_events(), *self._lag()),
            places=tuple(
                "; ".join((", ".join(one.name for one in reading.replicas), *reading.notes))
                for _, reading in self.readings
            ),
            unwritten=named,
            unwritten_total=unwritten,
        )

    @cached_property
    def _expectations(self) -> list[Expectation]:
        return key_expectations(self.fields, self.tables.comparable)

    @cached_property
    def _fails(self) -> dict[str, str]:
        """The condition of each expectation under which a row breaks it."""
        return {one.name: f"coalesce({one.rule.fails}, false)" for one in self._expectations}

    @cached_property
    def _rows(self) -> str:
        """The rows of the comparison with the expectations' own columns."""
        columns = {name: sql for one in self._expectations for name, sql in one.columns.items()}
        added = "".join(f", {sql} AS {quoted(name)}" for name, sql in columns.items())
        return f"(SELECT *{added} FROM comparison) AS compared"

    def _key_results(self) -> list[ExpectationResult]:
        counts = ", ".join(f"count(*) FILTER ({fails})" for fails in self._fails.values())
        query = f"SELECT place, count(*), {counts} FROM {self._rows} GROUP BY place"
        by_place = {place: numbers for place, *numbers in self.tables.rows(query)}
        results = []
        for store, reading in self.readings:
            own = [by_place[one.name] for one in reading.replicas if one.name in by_place]
            checked, *failed = (
                [sum(column) for column in zip(*own, strict=True)] if own else [0] * (1 + len(self._fails))
            )
            if not self._is_validated and not any(failed):
                results += [ExpectationResult(store.name, one.name, checked, 0) for one in self._expectations]
                continue
            broken = [fails for fails, number in zip(self._fails.values(), failed, strict=True) if number]
            found = self._validated(store.name, [one.name for one in reading.replicas], broken)
            for result, number in zip(found, failed, strict=True):
                if result.passed != (number == 0):
                    raise QualityError(
                        f"Great Expectations and SQL disagree about {result.expectation!r} in {store.name}: {plural(number, 'row')} failed in SQL."
                    )
                results.append(replace(result, checked=checked, failed=number))
        return results

    @property
    def _is_validated(self) -> bool:
        """Whether Great Expectations evaluates the rules even if no row breaks one."""
        return self.request.mode is not Mode.INCREMENTAL

    def _of_rows(
        self, store: StoreName, rows: pa.Table, expectation: Expectation, index: Sequence[str]
    ) -> list[ExpectationResult]:
        """Return the result of an expectation of a whole store over some rows; none without rows."""
        if not rows.num_rows:
            return [ExpectationResult(store, expectation.name, 0, 0)]
        if not self._is_validated:
            with duckdb.connect() as connection:
                found = connection.from_arrow(rows).filter(expectation.rule.fails).fetchone()
            if found is None:
                return [ExpectationResult(store, expectation.name, rows.num_rows, 0)]
        return validate(store, rows.to_pandas(), [expectation], index)

    def _validated(
        self, store: StoreName, places: Sequence[str], broken: Sequence[str]
    ) -> list[ExpectationResult]:
        """Return the results of Great Expectations over the rows that it sees. broken: the conditions that are true for some rows."""
        if not places:
            return [ExpectationResult(store, one.name, 0, 0) for one in self._expectations]
        texts = {name for one in self._expectations for name in one.columns}
        columns = ", ".join(f"CAST({quoted(name)} AS VARCHAR) AS {quoted(name)}" for name in sorted(texts))
        flat = f"place, key, partition, stored_offset, stored_count, required_offset, required_count, copy, {columns}"
        mine = f"place IN ({', '.join(map(text_literal, places))})"
        of_each = f"key IN (SELECT min(key) FROM comparison WHERE {mine} GROUP BY place)"
        seen = (
            f"(SELECT {flat} FROM {self._rows} WHERE {mine} AND {condition} LIMIT {SEEN_ROWS})"
            for condition in (of_each, *broken)
        )
        frame = self.tables.arrow(" UNION ".join(seen)).to_pandas()
        if frame.empty:
            return [ExpectationResult(store, one.name, 0, 0) for one in self._expectations]
        return validate(store, frame, self._expectations, ("place", "key"))

    def _failing_keys(self) -> tuple[tuple[FailingKey, ...], int]:
        """Return the first failing keys with both records of each, and the number of all."""
        any_fails = " OR ".join(self._fails.values())
        named = (f"CASE WHEN {fails} THEN {text_literal(name)} END" for name, fails in self._fails.items())
        names = f"list_filter([{', '.join(named)}], name -> name IS NOT NULL)"
        (total,) = self._one(f"SELECT count(*) FROM {self._rows} WHERE {any_fails}")
        if not total:
            return (), 0
        self.tables.create(
            "failing",
            f"""SELECT place, key, {names} AS names, stored, replayed FROM {self._rows} WHERE {any_fails}
            ORDER BY place, key LIMIT {LISTED_KEYS}""",
        )
        newest_of_key = "SELECT key, arg_max(replayed, position) AS record FROM replayed WHERE key IN (SELECT key FROM failing) GROUP BY key"
        sides = ", ".join(
            self._text_of(f"{side}.{quoted(name)}", name)
            for side in ("stored", "whole")
            for name in self.fields
        )
        store_of = {one.name: store.name for store, reading in self.readings for one in reading.replicas}
        rows = self.tables.rows(
            f"""SELECT place, key, names, stored IS NULL, whole IS NULL, {sides}
            FROM (SELECT failing.*, coalesce(replayed, CASE WHEN stored IS NULL THEN record END) AS whole
                  FROM failing LEFT JOIN ({newest_of_key}) AS newest USING (key)) AS both_sides
            ORDER BY place, key"""
        )
        found = []
        for place, key, failed, lacks_stored, lacks_replayed, *values in rows:
            both = [
                dict(zip(self.fields, ("null" if one is None else one for one in side), strict=True))
                for side in (values[: len(self.fields)], values[len(self.fields) :])
            ]
            stored, replayed = ({} if lacks_stored else both[0], {} if lacks_replayed else both[1])
            found.append(FailingKey(store_of[place], place, key, tuple(failed), stored, replayed))
        return tuple(found), total

    def _text_of(self, value: str, field: str) -> str:
        """Return a field of a record as text: times in UTC, without a zone."""
        is_time = self.fields[field].startswith("TIMESTAMP")
        return f"CAST({f'CAST({value} AS TIMESTAMP)' if is_time else value} AS VARCHAR)"

    def _store_results(self) -> list[ExpectationResult]:
        found: list[ExpectationResult] = []
        quality = self.target.settings.quality
        for store, reading in self.readings:
            names = [one.name for one in reading.replicas]
            if store.name is StoreName.LAKE:
                lags = pa.table({"place": names[:1], "lag_s": [self.lake_lag_s]})
                found += self._of_rows(store.name, lags, fresh_within(quality.max_lake_age_s), ("place",))
            # Keys can leave between two counts.
            if self.counts is not None and not self.target.model.items_leave:
                numbers = self.keys.of_replicas(store.name, reading.replicas)
                differences = self.counts.differences(store, numbers, quality.wait_s)
                rows = pa.table({"place": list(differences), "difference": list(differences.values())})
                found += self._of_rows(store.name, rows, SAME_COUNT, ("place",))
            places = ", ".join(map(text_literal, names)) or "NULL"
            shares = self.tables.arrow(MISSING_SHARES.format(places=places))
            found += self._of_rows(store.name, shares, NOT_TRUNCATED, ("place", "partition"))
            faults = reading.faults
            found.append(
                ExpectationResult(
                    store.name,
                    RIGHT_STORE,
                    max(len(names), len(faults)),
                    len(faults),
                    finding="; ".join(faults),
                )
            )
        lost = self.target.lost
        sample = tuple({"partition": str(p), "first_offset": str(offset)} for p, offset in lost.items())
        found.append(
            ExpectationResult(
                self.request.stores[0], WHOLE_LOG, len(self.target.cut), len(lost), sample=sample
            )
        )
        return found

    @cached_property
    def lake_lag_s(self) -> float:
        """The age of the oldest event that the lake lacks; 0 if the lake is not checked."""
        for store, reading in self.readings:
            if store.name is StoreName.LAKE:
                return store.lag_s(reading.replicas[0].cut)
        return 0.0

    @cached_property
    def keys(self) -> LogKeyNumbers:
        """The numbers of keys in the log."""
        return LogKeyNumbers(self.tables, self.cuts, self.verified)

    def _lost_events(self) -> list[str]:
        topic = self.target.model.source_topic
        return [
            f"the log is not whole: {topic}/{partition} starts at offset {offset}, so nothing can be verified"
            for partition, offset in self.target.lost.items()
        ]

    def _lag(self) -> list[str]:
        """Return a line for each store that lags its cut, with the number of events that its slowest replica lacks."""
        query = """SELECT place, sum(greatest(required_count - coalesce(stored_count, 0), 0)) FROM comparison
            WHERE stored_offset < required_offset OR stored IS NULL GROUP BY place"""
        by_place = dict(self.tables.rows(query))
        lines = []
        for store, reading in self.readings:
            events = max((by_place.get(one.name) or 0 for one in reading.replicas), default=0)
            if events:
                lines.append(f"not complete: {store.name} is behind by {plural(int(events), 'event')}")
        return lines

    def _unwritten(self) -> tuple[int, tuple[str, ...]]:
        """Return the number of keys without a record because their state cannot be written, and the first ones with what of it fails.

        It cannot be written where a store must have read them, or after all events.
        """
        (number,) = self._one("SELECT count(DISTINCT key) FROM unwritten")
        if not number:
            return 0, ()
        query = f"SELECT key, min(failed) FROM unwritten GROUP BY key ORDER BY key LIMIT {NAMED_UNWRITTEN}"
        return int(number), tuple(f"{key} ({failed})" for key, failed in self.tables.rows(query))

    def _one(self, query: str) -> tuple[Any, ...]:
        return one_row(self.tables, query)
