"""A read model whose events and states have the names of Foldlake's own columns: lake, checks, rebuild, comparison, explanation, event table."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.declarations.topic_tables import TopicTable
from include.kafka.events import GenericEvent
from include.lake.tables import table_path, verified_path
from include.quality.check import CheckRequest, Mode, StoreName
from include.rebuild.comparison import report
from include.rebuild.request import RebuildRequest
from include.settings import Settings
from include.versions.explanation import object_of
from spark_jobs.build_staging import build_staging
from spark_jobs.compaction import compact
from spark_jobs.compare_versions import compare_versions
from spark_jobs.event_tables import append_new
from spark_jobs.explain import explanation
from spark_jobs.lake.live_lake import promote
from spark_jobs.quality_check import check
from tests.support.faults import tricky_names as tricky
from tests.support.lake.folded_log import fold_log, make_first_version
from tests.support.lake.registered_version import registered_version
from tests.support.stream_process import EventSource

NAME = "tricky-names"
MODULE = f"""
from tests.support.faults.tricky_names import read_model
DECLARATIONS = [read_model({NAME!r}, {NAME!r}, ("Rating", "Review"))]
"""
SUBJECTS = 10
START = datetime(2026, 1, 1, tzinfo=UTC)


class Log:
    """The events of the read model, and the changelog that its fold makes of them."""

    def __init__(self, settings: Settings, spark: SparkSession) -> None:
        folder = settings.home / f"models-of-{NAME}"
        folder.mkdir()
        tricky.write_schemas(folder)
        (folder / "tricky.py").write_text(MODULE)
        self.settings = settings.changed(read_models_dir=folder, quality_wait_s=2.0)
        self.spark = spark
        self.model: ReadModel = read_model(NAME, (folder,))
        make_first_version(self.settings, NAME)
        self.source = EventSource(self.settings, NAME)
        self.count = 0
        self.newest: dict[str, int] = {}

    def append(self, count: int) -> None:
        """Append events of the two types alternately, and fold the log."""
        for number in range(self.count, self.count + count):
            subject = f"s{number % SUBJECTS}"
            values = tricky.event(number, subject) | {"occurredOn": START + timedelta(seconds=number)}
            schema = self.model.event_schemas[number // SUBJECTS % 2]
            self.source.append_raw(
                subject.encode(), self.source.serializer.serialize(GenericEvent(schema, values))
            )
            self.newest[subject] = number
        self.source.flush()
        self.count += count
        fold_log(self.spark, self.settings, self.model)

    def check(self, *stores: StoreName, mode: Mode, version: int | None = None) -> None:
        """Check these stores; every record must be right."""
        result = check(
            self.spark, self.settings, CheckRequest(NAME, stores, mode, f"{mode}-{version}", version)
        )
        assert result.passed, (result.verdict, result.failing_keys)
        assert (result.request.mode, result.full_check_reason) == (mode, "")


States = Mapping[str, Mapping[str, object]]


def stored(path: str) -> States:
    return {
        row["key"]: {name: row[name] for name in (*tricky.STATE_NAMES, tricky.NULLABLE)}
        for row in DeltaTable(path).to_pyarrow_table().to_pylist()
    }


def expected(log: Log) -> States:
    return {key: tricky.expected(number) for key, number in log.newest.items()}


@pytest.fixture(scope="module")
def log(settings: Settings, lake_spark: SparkSession) -> Log:
    log = Log(settings, lake_spark)
    log.append(4 * SUBJECTS)
    return log


def test_the_lake_has_the_states_and_a_check_passes(log: Log) -> None:
    assert promote(log.spark, log.settings, log.model) is not None
    log.check(StoreName.LAKE, StoreName.CHANGELOG, mode=Mode.FULL)

    assert stored(table_path(log.settings.lake_root, NAME)) == expected(log)


@pytest.mark.endurance
def test_compactions_and_incremental_checks_agree(log: Log) -> None:
    """After the test above."""
    log.append(SUBJECTS // 2)
    assert compact(log.spark, log.settings, log.model) is not None
    log.check(StoreName.LAKE, mode=Mode.INCREMENTAL)

    for path in (table_path(log.settings.lake_root, NAME), verified_path(log.settings.lake_root, NAME, 1)):
        assert stored(path) == expected(log)


@pytest.mark.endurance
def test_a_rebuild_agrees_and_is_compared(log: Log) -> None:
    request = RebuildRequest({NAME: 1}, "test", approve=True, grace_h=1.0)
    number = registered_version(log.settings, log.model, request, "rebuild")
    build_staging(log.spark, log.settings, log.model, number)
    log.check(StoreName.STAGING, mode=Mode.FULL, version=number)
    compare_versions(log.spark, log.settings, log.model, number, "compared")

    found = report.read(log.settings.home, "compared")
    assert found is not None
    assert (found.changed, found.added, found.gone, found.all_keys) == (0, 0, 0, SUBJECTS)
    assert set(found.fields) == {*tricky.STATE_NAMES, tricky.NULLABLE}


def test_an_explanation_shows_events_and_states(log: Log) -> None:
    found = explanation(log.spark, log.settings, log.model, "s1", None, 3, ())

    events = [number for number in range(log.count) if number % SUBJECTS == 1]
    shown = [*events[:3], *events[3:][-3:]]
    assert [object_of(event.state) for event in found.events] == [tricky.expected(number) for number in shown]
    assert [object_of(event.event) for event in found.events] == [
        tricky.event(number, "s1") for number in shown
    ]


def test_the_event_table_has_the_fields(log: Log) -> None:
    table = TopicTable(log.model.events)
    done = append_new(log.spark, log.settings, table)

    assert done is not None
    assert done.tag.rows == log.count
    path = Path(table_path(log.settings.lake_root, f"events/{NAME}"))
    found = {
        row["subject"]: row
        for row in DeltaTable(path).to_pyarrow_table().to_pylist()
        if row["value"] is not None
    }
    assert len(found) == SUBJECTS
