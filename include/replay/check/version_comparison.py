"""Compares a rebuild's version with the live version with DuckDB: from events of its own, or from those that the check of the version has read."""

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError
from include.kafka.avro.avro_types import avro_type
from include.lake.tables import staging_path
from include.lake.tagged_table import TaggedTable, newest_tag
from include.lake.tags import CommitTag
from include.position import EVENT_COUNT
from include.quality.check import CheckRequest
from include.rebuild.comparison.compared_versions import ComparedVersions, HowCompared
from include.rebuild.comparison.fold_source import FoldText
from include.rebuild.comparison.report import report_url
from include.rebuild.comparison.state_difference import AFTER, BEFORE, EVENTS, JoinedStates, StateDifference
from include.rebuild.stage import report_id
from include.replay.check.comparison import below
from include.replay.check.event_source import EventSource
from include.replay.check.stores.delta_table import delta_rows
from include.replay.check.target import OtherEngineError
from include.replay.database import check_database
from include.replay.event_relation import EVENTS as LOG_EVENTS
from include.replay.fold_sql import FoldSql, duckdb_types, fold_sql
from include.settings import CheckEngine, Settings
from include.versions.version_record import Version

LOG = logging.getLogger("foldlake.compare_versions")


@dataclass(frozen=True)
class States:
    """The states of a version. query: of `key`, `event_count` and the fields. types: of each field."""

    query: str
    types: Mapping[str, str]


@dataclass(frozen=True)
class VersionComparison:
    """The comparison of two versions, and its report. rules: of the live version; None if there is none."""

    settings: Settings
    versions: ComparedVersions
    run_id: str
    folds: tuple[FoldText, ...]
    rules: FoldSql | None

    @classmethod
    def of(cls, settings: Settings, versions: ComparedVersions, run_id: str) -> "VersionComparison":
        """Return the comparison; raises OtherEngineError and NotTranslatedError where Spark must compare."""
        if versions.model.items_leave:
            raise OtherEngineError("items leave the read model")
        if versions.no_replay_because:
            raise OtherEngineError(f"the live version cannot be folded again: {versions.no_replay_because}")
        live = versions.live
        rules = None if live is None else fold_sql(_reading(versions.model, live), live.fold_revision)
        return cls(settings, versions, run_id, versions.fold_texts(_refused), rules)

    @property
    def is_written(self) -> bool:
        """Whether the report is there already."""
        return self.versions.is_written(self.settings.home, self.run_id, self.folds)

    @property
    def columns(self) -> frozenset[tuple[str, ...]]:
        """See EventUse."""
        return frozenset() if self.rules is None else self.rules.columns

    def run(self) -> None:
        """Read the events of the live version, compare, and write the report."""
        with check_database(self.settings) as connection:
            live, started_s, sources = self.versions.live, time.monotonic(), ""
            if live is not None and self.rules is not None:
                model = _reading(self.versions.model, live)
                events = EventSource(connection, self.settings, model, self.rules)
                events.read_all(self.versions.until)
                sources = events.description
            self._compare(connection, started_s, sources)

    def use(self, connection: duckdb.DuckDBPyConnection, event_sources: str) -> None:
        """Compare with the events of a check, and write the report. An error is logged: the stage of the comparison repeats it."""
        try:
            self._compare(connection, time.monotonic(), event_sources)
        except Exception:
            LOG.warning("the versions are compared by the next stage", exc_info=True)

    def _compare(self, connection: duckdb.DuckDBPyConnection, started_s: float, sources: str) -> None:
        after = self._staged(connection)
        before = States(f"FROM ({after.query}) LIMIT 0", after.types)
        if self.versions.live is not None and self.rules is not None:
            before = self._folded(connection, self.versions.live, self.rules)
        found = compare_states(connection, before, after)
        how = HowCompared(CheckEngine.DUCKDB, event_sources=sources)
        self.versions.write_report(self.settings, self.run_id, found, self.folds, started_s, how)

    def _staged(self, connection: duckdb.DuckDBPyConnection) -> States:
        versions, number = self.versions, self.versions.version.number
        path = staging_path(self.settings.lake_root, versions.model.name, number)
        rows = delta_rows(connection, "compared_staging", path, versions.staging.delta_version)
        return States(f"FROM {rows}", self._types(versions.version))

    def _folded(self, connection: duckdb.DuckDBPyConnection, live: Version, rules: FoldSql) -> States:
        """Fold the events up to those that staging contains; raises OtherEngineError for a state that cannot be written."""
        fields = ", ".join(f'{aggregate} AS "{name}"' for name, aggregate in rules.fields.items())
        connection.execute(
            f"""CREATE TABLE live_states AS
            SELECT key, {rules.position[EVENT_COUNT.name]} AS {EVENTS}, {fields}
            FROM {LOG_EVENTS} WHERE {below(self.versions.until)} GROUP BY key"""
        )
        schema = avro_type(self.versions.model.state_schema_of(live.fold_revision).parsed())
        required = [field.name for field in schema.fields if not field.type.is_nullable]
        absent = " OR ".join(f'"{name}" IS NULL' for name in rules.fields if name in required) or "false"
        if connection.execute(f"SELECT 1 FROM live_states WHERE {absent} LIMIT 1").fetchone():
            raise OtherEngineError("a state of the live version cannot be written")
        return States("FROM live_states", self._types(live))

    def _types(self, version: Version) -> dict[str, str]:
        types = duckdb_types(self.versions.model.state_schema_of(version.fold_revision))
        return {name: types[name] for name in self.versions.fields_of(version)}


def comparison_after(settings: Settings, request: CheckRequest) -> VersionComparison | None:
    """Return the comparison that follows a check of a rebuild's version and needs no other events; None if there is none, or Spark must compare."""
    if request.version is None or request.run_id != report_id(request.read_model, request.version):
        return None
    try:
        found = _versions(settings, request.read_model, request.version)
        comparison = None if found is None else VersionComparison.of(settings, found, request.run_id)
    except FoldlakeError as error:
        LOG.info("the versions are compared by the next stage: %s", error)
        return None
    if found is None or found.live is None:
        return comparison
    live, version = (
        (one.source_topic, one.starts)
        for one in (_reading(found.model, found.live), _reading(found.model, found.version))
    )
    return comparison if live == version else None


def compare_unless_written(settings: Settings, name: str, number: int, run_id: str) -> None:
    """Compare a version with the live one, unless its check has; errors as those of `VersionComparison.of` and `ComparedVersions.of`."""
    versions = _versions(settings, name, number)
    if versions is None:
        return
    comparison = VersionComparison.of(settings, versions, run_id)
    if comparison.is_written:
        LOG.info("compared by the check of the version: %s", report_url(settings.reports_base_url, run_id))
    else:
        comparison.run()


def _versions(settings: Settings, name: str, number: int) -> ComparedVersions | None:
    if "://" in settings.lake_root.removeprefix("file://"):
        raise OtherEngineError("the lake is not on a file system of this machine")
    table = TaggedTable.open(staging_path(settings.lake_root, name, number), CommitTag.from_json)
    model = read_model(name, settings.declaration_folders)
    return ComparedVersions.of(
        settings, model, number, lambda: None if table is None else newest_tag(table.history)
    )


def compare_states(connection: duckdb.DuckDBPyConnection, before: States, after: States) -> StateDifference:
    """Compare the states of two versions."""
    # DuckDB's sum of decimals beyond its range is an error: Spark then compares.
    connection.execute("CREATE OR REPLACE TEMP MACRO try_sum(number) AS sum(number)")
    sides = (_numbered(side, states) for side, states in ((BEFORE, before), (AFTER, after)))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE states AS FROM ({next(sides)}) FULL JOIN ({next(sides)}) USING (key)"
    )

    def rows(query: str) -> list[dict[str, Any]]:
        found = connection.execute(query.format(states="states")).fetch_arrow_table()
        return found.to_pylist()  # type: ignore[no-any-return]

    return JoinedStates(before.types, after.types, rows).difference()


def _numbered(side: str, states: States) -> str:
    columns = "".join(
        f', CAST("{name}" AS {kind}) AS {side}_{number}'
        for number, (name, kind) in enumerate(states.types.items())
    )
    return f"SELECT key, {EVENTS} AS events_{side}{columns} FROM ({states.query})"


def _reading(model: ReadModel, version: Version) -> ReadModel:
    return model.reading(version.source_topic, version.starts)


def _refused(_fold: object) -> tuple[str, ...]:
    raise OtherEngineError("a fold is a function")
