"""An event table has each event of its topic once, whenever its job is killed or another process has appended meanwhile."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from cli.lake import event_table_lines
from include.kafka.topic_state import TopicState, topic_state
from include.lake.event_table_check import check_event_table
from include.lake.pending_work import has_records_to_append
from include.lake.status import event_table_status
from include.lake.tables import LakeLockedError, lake_lock
from include.lake.tags import APPEND, AppendTag
from include.settings import Settings
from spark_jobs import event_tables
from spark_jobs.event_tables import Appends, append_new
from spark_jobs.lake import table_update
from spark_jobs.lake.append_state import ChangedTopicError, UnknownOffsetsError
from spark_jobs.lake.event_rows import ROW, count_kinds
from spark_jobs.lake.table_definition import LakeTableError
from stack.launchers.direct_submit import launch
from tests.integration.lake.test_compaction_kills import JOB_TIMEOUT_S, kill
from tests.support.faults.transactions import TransactionalWriter
from tests.support.lake.event_ledger import FIELDS, NOTE, EventLedger
from tests.support.waiting import wait_until

MODULE = """
from include.declarations.event_table import EventTable
DECLARATIONS = [EventTable({name!r}, {name!r}, "Sale")]
"""


def appended(
    ledger: EventLedger, spark: SparkSession, *, slice_records: int = 1_000, force_optimize: bool = False
) -> Appends:
    """Bring the table up to date, and compare it with the ledger."""
    done = append_new(
        spark, ledger.settings, ledger.declared, slice_records=slice_records, force_optimize=force_optimize
    )
    assert done is not None
    assert ledger.rows() == ledger.expected
    found = check_event_table(ledger.settings.lake_root, ledger.declared)
    assert found.is_exact, found
    assert (found.rows, found.doubled_ids, found.uncounted) == (len(ledger.expected), 0, 0)
    return done


@pytest.fixture(scope="module")
def ledger(settings: Settings, lake_spark: SparkSession) -> EventLedger:
    """A table to which 500 sales were appended in slices, and then 100 more."""
    ledger = EventLedger(settings, "sold")
    ledger.sell(0, 500)
    first = appended(ledger, lake_spark, slice_records=300)
    assert (first.commits > 1, first.counts[ROW]) == (True, 500)
    ledger.sell(500, 100)
    assert appended(ledger, lake_spark).commits == 1
    return ledger


def test_the_offsets_in_the_tags_only_grow_up_to_the_end_of_the_topic(ledger: EventLedger) -> None:
    read = [tag.records for tag in ledger.append_tags()]
    assert read == sorted(set(read))
    assert (read[-1], ledger.append_tags()[-1].rows) == (600, 600)


def test_without_new_events_nothing_is_committed(ledger: EventLedger, lake_spark: SparkSession) -> None:
    before = DeltaTable(ledger.path).version()
    assert not has_records_to_append(ledger.settings, ledger.declared)
    assert appended(ledger, lake_spark).commits == 0
    TransactionalWriter(ledger.settings, ledger.declared.source_topic).abort([(b"1", b"aborted")] * 3)
    assert not has_records_to_append(ledger.settings, ledger.declared), "aborted records are no events"
    assert DeltaTable(ledger.path).version() == before


def test_the_table_is_partitioned_by_month_and_its_columns_are_those_of_the_schema(
    ledger: EventLedger,
) -> None:
    table = DeltaTable(ledger.path)
    assert table.metadata().partition_columns == ["occurred_month"]
    assert {Path(file).parent.name for file in table.file_uris()} == {
        f"occurred_month=2017-{month:02}" for month in range(1, 4)
    }
    columns = {column.name: column.metadata.get("comment") for column in table.schema().fields}
    assert list(columns) == [
        *("id", "occurredOn", "store", "price"),
        *("occurred_month", "source_partition", "source_offset"),
    ]
    assert columns["price"] == "What was paid."
    assert table.metadata().configuration["delta.enableDeletionVectors"] == "false"


def test_the_status_shows_months_rows_and_lag(ledger: EventLedger) -> None:
    status = event_table_status(
        ledger.settings.lake_root, ledger.settings.kafka_connection, ledger.declared, commits=2
    )

    assert status is not None
    assert (status.table.rows, status.table.behind, status.unreadable, status.lost) == (600, 0, 0, 0)
    assert status.months == {"2017-01": 217, "2017-02": 196, "2017-03": 187}
    text = "\n".join(event_table_lines(status))
    assert "sold: event table of sold" in text
    assert "months          3, 2017-01 to 2017-03" in text


def test_a_run_that_ends_after_its_commit_is_repeated_without_effect(
    settings: Settings, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = EventLedger(settings, "sold-interrupted")
    ledger.sell(0, 60)

    def fail(*_: object, **__: object) -> None:
        raise ConnectionError

    with monkeypatch.context() as patched:
        patched.setattr(table_update, "maintain", fail)
        with pytest.raises(ConnectionError):
            append_new(lake_spark, settings, ledger.declared)
    assert ledger.append_tags()[-1].rows == 60

    assert appended(ledger, lake_spark).commits == 0


def test_a_commit_that_a_killed_process_completes_late_is_not_repeated(
    settings: Settings, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = EventLedger(settings, "sold-late")
    ledger.sell(0, 40)
    topic = topic_state(settings.kafka_connection, ledger.name)
    assert topic is not None
    ledger.sell(40, 40)
    late = [topic]

    def count_after_late_commit(rows: DataFrame) -> Mapping[str, int]:
        # The other process had read the same tag, but an earlier end of the topic.
        if late:
            commit_late(ledger, lake_spark, late.pop())
        return count_kinds(rows)

    monkeypatch.setattr("spark_jobs.event_tables.count_kinds", count_after_late_commit)

    done = appended(ledger, lake_spark)

    assert [tag.rows for tag in ledger.append_tags()] == [40, 80]
    assert (done.tag.rows, done.counts[ROW]) == (80, 40)


def commit_late(ledger: EventLedger, spark: SparkSession, topic: TopicState) -> None:
    """Append everything up to the topic's ends, as a run that does not hold the lock any more."""
    table = event_tables.delta_table(spark, ledger.settings, ledger.declared)
    tag = AppendTag(ledger.name, ledger.name, topic.topic_id, start=topic.starts, offsets=topic.starts)
    event_tables.append_slice(table, ledger.settings, topic, tag, 1_000)


def test_records_that_are_no_events_of_the_table_are_counted(
    settings: Settings, lake_spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    ledger = EventLedger(settings, "sold-with-junk")
    # Nothing has registered a schema yet.
    ledger.append_raw(b"1", b"junk")
    appended(ledger, lake_spark)
    empty = event_table_status(settings.lake_root, settings.kafka_connection, ledger.declared, commits=1)
    assert empty is not None
    assert (empty.table.rows, empty.months, empty.unreadable, empty.table.behind) == (0, {}, 1, 0)
    ledger.sell(0, 5)
    ledger.append_raw(b"2", None)

    with caplog.at_level(logging.WARNING):
        done = appended(ledger, lake_spark)

    assert (done.tag.rows, done.tag.unreadable, done.tag.records) == (5, 2, 7)
    assert (
        "skipped records of sold-with-junk that cannot be decoded as Sale: null_value: 1"
        in caplog.messages[-1]
    )


@pytest.mark.endurance
def test_a_new_optional_field_is_a_new_column_and_another_type_is_refused(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = EventLedger(settings, "sold-evolved")
    ledger.sell(0, 10)
    appended(ledger, lake_spark)
    ledger.set_fields((*FIELDS[:3], NOTE, FIELDS[3]))
    ledger.sell(10, 10, note="gift")
    appended(ledger, lake_spark)
    names = [column.name for column in DeltaTable(ledger.path).schema().fields]
    assert names[:5] == ["id", "occurredOn", "store", "note", "price"]

    ledger.set_fields((*FIELDS[:3], {"name": "price", "type": "string"}))
    with pytest.raises(LakeTableError, match=r"has column price as decimal\(18,2\).* declares string"):
        append_new(lake_spark, settings, ledger.declared)


def test_a_recreated_topic_is_refused_until_the_table_is_removed(
    settings: Settings, lake_spark: SparkSession, tmp_path: Path
) -> None:
    ledger = EventLedger(settings, "sold-again")
    ledger.sell(0, 10)
    appended(ledger, lake_spark)
    before = ledger.rows()
    ledger.recreate_topic()
    ledger.sell(100, 20)
    assert has_records_to_append(settings, ledger.declared)

    with pytest.raises(ChangedTopicError, match="sold-again was deleted and created again"):
        append_new(lake_spark, settings, ledger.declared)
    assert ledger.rows() == before

    Path(ledger.path).rename(tmp_path / "old table")
    assert appended(ledger, lake_spark).tag.rows == 20


def test_a_table_without_offsets_is_left_as_it_is(settings: Settings, lake_spark: SparkSession) -> None:
    ledger = EventLedger(settings, "sold-elsewhere")
    ledger.sell(0, 10)
    write_deltalake(ledger.path, pa.table({"id": ["another"]}))

    with pytest.raises(UnknownOffsetsError, match="has rows, but no commit in its history has the offsets"):
        append_new(lake_spark, settings, ledger.declared)

    assert DeltaTable(ledger.path).to_pyarrow_table()["id"].to_pylist() == ["another"]


def test_a_topic_that_lost_its_newest_records_is_refused(
    settings: Settings, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = EventLedger(settings, "sold-lost")
    ledger.sell(0, 10)
    appended(ledger, lake_spark)
    state = topic_state(settings.kafka_connection, ledger.name)
    assert state is not None
    # As after a power failure of a broker that had not synced its files.
    shortened = replace(state, ends=type(state.ends)({p: max(0, end - 1) for p, end in state.ends.items()}))
    monkeypatch.setattr(event_tables, "topic_state", lambda *_: shortened)

    with pytest.raises(ChangedTopicError, match=r"Kafka has lost records of sold-lost: partition \d ends at"):
        append_new(lake_spark, settings, ledger.declared)


def test_a_second_writer_is_kept_out(
    settings: Settings, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = EventLedger(settings, "sold-locked")
    monkeypatch.setattr("include.lake.tables.LOCK_WAIT_S", 0.1)
    with lake_lock(settings.home, ledger.name), pytest.raises(LakeLockedError):
        append_new(lake_spark, settings, ledger.declared)


@pytest.mark.endurance
def test_optimize_merges_the_files_of_each_month_and_keeps_the_tag(
    ledger: EventLedger, lake_spark: SparkSession
) -> None:
    done = appended(ledger, lake_spark, force_optimize=True)

    assert [one.operation for one in done.maintenance] == ["OPTIMIZE", "VACUUM"]
    assert done.after.files == 3 < done.before.files
    newest = ledger.history()[0].tag
    assert newest is not None
    assert replace(newest, operation=APPEND) == done.tag
    assert appended(ledger, lake_spark).commits == 0


@pytest.mark.endurance
@pytest.mark.timeout(1800)
def test_the_table_is_exact_after_a_kill_at_every_step(settings: Settings) -> None:
    ledger = EventLedger(settings, "sold-killed")
    (ledger.folder / "sold_killed.py").write_text(MODULE.format(name=ledger.name))
    settings = settings.changed(read_models_dir=ledger.folder)
    table = Path(ledger.path)
    for number, pattern in enumerate(("_delta_log/*.json", "*/*.parquet", "_delta_log/*.json")):
        ledger.sell(number * 300, 300)
        before = set(table.glob(pattern))
        process = launch(settings, "event_tables", ["--event-table", ledger.name])
        wait_until(
            lambda pattern=pattern, before=before, process=process: (  # type: ignore[misc]
                process.poll() is not None or set(table.glob(pattern)) - before
            ),
            pattern,
            timeout_s=JOB_TIMEOUT_S,
        )
        assert process.poll() is None
        kill(process)

    assert launch(settings, "event_tables", ["--event-table", ledger.name]).wait(JOB_TIMEOUT_S) == 0

    assert ledger.rows() == ledger.expected
    assert check_event_table(settings.lake_root, ledger.declared).is_exact
