"""Every fault that is planted into a store is found, and named: the expectation, and the key with both its values."""

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from include.lake.tables import quality_path
from include.position import Offsets
from include.quality.check import Mode, StoreName, UncheckableError
from include.quality.verdict import Outcome, verdict_of
from include.settings import Settings
from spark_jobs.quality.expectations.complete_to_cut import COMPLETE
from spark_jobs.quality.expectations.field_is_replayed import folds_to
from spark_jobs.quality.expectations.fresh import FRESH
from spark_jobs.quality.expectations.key_count import KEY_COUNT
from spark_jobs.quality.expectations.key_stored_once import ONCE
from spark_jobs.quality.expectations.no_extra_key import NO_EXTRA_KEY
from spark_jobs.quality.expectations.no_missing_key import NO_MISSING_KEY
from spark_jobs.quality.expectations.no_truncated_partition import WHOLE_PARTITIONS
from spark_jobs.quality.expectations.right_store import RIGHT_STORE
from tests.support.checked_ledger import ONE_FOR_ALL, CheckedLedger, Record, failed, named

KEY = "customer 7/é"
CUSTOMERS, EVENTS_EACH = 40, 5


@pytest.fixture(scope="module")
def ledger(settings: Settings) -> CheckedLedger:
    """Some customers with some events each."""
    ledger = CheckedLedger(settings, "faulty")
    ledger.append(CUSTOMERS, EVENTS_EACH)
    ledger.write_changelog(ledger.records.values())
    return ledger


def test_right_records_pass(ledger: CheckedLedger, lake_spark: SparkSession) -> None:
    ledger.write_lake(lake_spark, ledger.records.values())

    result = ledger.check(lake_spark, StoreName.LAKE, StoreName.CHANGELOG)

    assert (failed(result), named(result)) == ({}, {})
    assert result.passed
    assert (result.keys, result.events) == (2 * CUSTOMERS, CUSTOMERS * EVENTS_EACH)


@pytest.mark.parametrize(
    ("store", "key", "expectations", "stored", "replayed"),
    [
        pytest.param(
            lambda right: [right[-1].plus(cents=1)],
            KEY,
            {folds_to("amount")},
            "15.01",
            "15.00",
            id="amount off",
        ),
        pytest.param(
            lambda right: [right[-1].plus(cents=500, events=1)],
            KEY,
            {folds_to("amount"), folds_to("event_count")},
            "20.00",
            "15.00",
            id="event folded twice",
        ),
        pytest.param(
            lambda right: [right[-1].plus(cents=-200, events=-1)],
            KEY,
            {folds_to("amount"), folds_to("event_count")},
            "13.00",
            "15.00",
            id="event skipped",
        ),
        pytest.param(lambda right: [right[-2]], KEY, {COMPLETE}, "10.00", "10.00", id="newest event missing"),
        pytest.param(lambda _: [], KEY, {NO_MISSING_KEY}, None, "15.00", id="key missing"),
        pytest.param(
            lambda right: [right[-1], replace(right[-1], key="nobody")],
            "nobody",
            {NO_EXTRA_KEY},
            "15.00",
            None,
            id="extra key",
        ),
        pytest.param(lambda right: [right[-1]] * 2, KEY, {ONCE}, "15.00", "15.00", id="key twice"),
    ],
)
def test_a_fault_in_the_lake_is_named(
    ledger: CheckedLedger,
    lake_spark: SparkSession,
    store: Callable[[list[Record]], list[Record]],
    key: str,
    expectations: set[str],
    stored: str | None,
    replayed: str | None,
) -> None:
    others = [record for record in ledger.records.values() if record.key != KEY]
    ledger.write_lake(lake_spark, [*others, *store(ledger.history[KEY])])

    result = ledger.check(lake_spark, StoreName.LAKE)

    assert failed(result) == dict.fromkeys(expectations, 1)
    (failing,) = result.failing_keys
    assert (failing.place, failing.key, set(failing.expectations)) == ("lake", key, expectations)
    assert (failing.stored.get("amount"), failing.replayed.get("amount")) == (stored, replayed)
    samples = [row["key"] for e in result.expectations if not e.passed for row in e.sample]
    assert samples == [key] * len(expectations)


def test_a_truncated_partition_is_named(ledger: CheckedLedger, lake_spark: SparkSession) -> None:
    lost = {key for key, record in ledger.records.items() if record.source_partition == 2}
    ledger.write_lake(lake_spark, [r for r in ledger.records.values() if r.key not in lost])

    result = ledger.check(lake_spark, StoreName.LAKE)

    assert failed(result) == {NO_MISSING_KEY: len(lost), WHOLE_PARTITIONS: 1}
    assert named(result).keys() == lost
    (truncated,) = (e for e in result.expectations if e.expectation == WHOLE_PARTITIONS)
    assert truncated.sample == ({"place": "lake", "partition": "2"},)


def test_a_table_of_another_version_is_named(
    ledger: CheckedLedger, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if version 1 had been live for long: it is given more time after a promotion.
    monkeypatch.setattr("spark_jobs.quality.check_setup.LAKE_FOLLOWS_WITHIN_S", 0.0)
    ledger.write_lake(lake_spark, ledger.records.values(), version=2)

    result = ledger.check(lake_spark, StoreName.LAKE)

    assert failed(result) == {RIGHT_STORE: 1}
    assert "the lake holds version 2, not version 1" in result.verdict


def test_a_promotion_on_its_way_to_the_lake_is_waited_for(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = CheckedLedger(settings, "promoted-meanwhile")
    ledger.settings = ledger.settings.changed(quality_wait_s=60.0)
    ledger.append(3, 2)
    ledger.write_lake(lake_spark, ledger.records.values(), version=2)
    late = threading.Timer(4.0, ledger.promote_another)
    late.start()

    result = ledger.check(lake_spark, StoreName.LAKE)

    late.join()
    assert result.passed, result.verdict
    assert result.version == 2


def test_a_table_is_as_old_as_the_first_event_that_it_lacks(
    ledger: CheckedLedger, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = ledger.settings.changed(quality_max_lake_age_s=1e-6)
    monkeypatch.setattr(ledger, "settings", impatient)
    # What is known of the table lies far behind what is in it: the stream was stopped before it noted how far it was.
    ledger.write_lake(lake_spark, ledger.records.values(), complete_up_to=Offsets())
    whole = ledger.check(lake_spark, StoreName.LAKE)
    others = [record for record in ledger.records.values() if record.key != KEY]
    ledger.write_lake(lake_spark, [*others, ledger.history[KEY][-2]], complete_up_to=Offsets())
    lacking = ledger.check(lake_spark, StoreName.LAKE)

    assert whole.passed, whole.verdict
    assert failed(lacking) == {FRESH: 1}


def test_keys_of_several_partitions_are_said_to_be_uncheckable(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = CheckedLedger(settings, "mixed", key=ONE_FOR_ALL)
    ledger.append(10, 2)
    newest = max(ledger.records.values(), key=lambda record: record.source_offset)
    ledger.write_changelog([replace(newest, key="all")])
    partitions = sorted({record.source_partition for record in ledger.records.values()})

    with pytest.raises(UncheckableError) as refused:
        ledger.check(lake_spark, StoreName.CHANGELOG, run_id="mixed")

    assert "mixed cannot be checked: 1 of its 1 keys have events in several source" in str(refused.value)
    assert f"key 'all' in partitions {', '.join(map(str, partitions))}" in str(refused.value)
    assert "produce the events to another topic" in str(refused.value)

    verdict = verdict_of(settings, "mixed")
    assert verdict is not None
    assert verdict.outcome is Outcome.UNCHECKABLE


def test_a_stream_that_stopped_is_said_to_be_behind(settings: Settings, lake_spark: SparkSession) -> None:
    ledger = CheckedLedger(settings, "stopped")
    ledger.append(10, 3)
    ledger.write_changelog(history[1] for history in ledger.history.values())

    result = ledger.check(lake_spark, StoreName.CHANGELOG)

    assert failed(result) == {COMPLETE: 10}
    assert "not complete: changelog is behind by 10 events" in result.verdict


def test_an_event_on_its_way_is_waited_for(settings: Settings, lake_spark: SparkSession) -> None:
    ledger = CheckedLedger(settings, "on-its-way")
    ledger.settings = ledger.settings.changed(quality_wait_s=60.0)
    ledger.append(10, 3)
    ledger.write_changelog(history[1] for history in ledger.history.values())
    late = threading.Timer(8.0, lambda: ledger.write_changelog(ledger.records.values()))
    late.start()

    result = ledger.check(lake_spark, StoreName.CHANGELOG)

    late.join()
    assert result.passed, result.verdict


def test_a_sample_is_a_part_of_the_keys_but_all_are_counted(
    ledger: CheckedLedger, lake_spark: SparkSession
) -> None:
    ledger.settings = ledger.settings.changed(quality_sample_keys=10)
    ledger.write_lake(lake_spark, ledger.records.values())
    right = ledger.check(lake_spark, StoreName.LAKE, mode=Mode.SAMPLE)
    ledger.write_lake(lake_spark, list(ledger.records.values())[1:])
    lacking = ledger.check(lake_spark, StoreName.LAKE, mode=Mode.SAMPLE)

    assert right.passed, right.verdict
    assert 0 < right.keys < CUSTOMERS
    assert right.events == CUSTOMERS * EVENTS_EACH
    assert failed(lacking)[KEY_COUNT] == 1


def test_results_are_kept_and_the_report_shows_both_values(
    ledger: CheckedLedger, lake_spark: SparkSession
) -> None:
    records = ledger.records
    records[KEY] = records[KEY].plus(cents=1)
    ledger.write_lake(lake_spark, records.values())

    # The first try of the run was killed before its verdict: the second one's results replace its own.
    ledger.check(lake_spark, StoreName.LAKE, run_id="manual__2026-01-01T00:00:00+00:00")
    result = ledger.check(lake_spark, StoreName.LAKE, run_id="manual__2026-01-01T00:00:00+00:00")

    page = Path(result.report).read_text(encoding="utf-8")
    assert "15.01" in page
    assert "15.00" in page
    assert KEY in page
    assert Path(result.report).name == "manual__2026-01-01T00-00-00-00-00.html"
    table = lake_spark.read.format("delta").load(quality_path(ledger.settings))
    rows = table.where(table.run_id == result.request.run_id).collect()
    assert len(rows) == len(result.expectations)
    (wrong,) = (row for row in rows if not row.passed)
    assert (wrong.read_model, wrong.version, wrong.store, wrong.mode) == ("faulty", 1, "lake", "full")
    assert (wrong.expectation, wrong.checked, wrong.failed) == (folds_to("amount"), CUSTOMERS, 1)
    assert json.loads(wrong.sample) == [{"place": "lake", "key": KEY}]
    assert wrong.report == result.report
