"""Every planted fault is found and reported with its expectation, its key, and the stored and the replayed value."""

import itertools
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from confluent_kafka import murmur2
from pyspark.sql import DataFrame, SparkSession

from include.lake.tables import quality_path
from include.position import Offsets
from include.quality.check import CheckResult, Mode, StoreName
from include.replay.check import target
from include.replay.key_expectations import (
    COMPLETE,
    FRESH,
    KEY_COUNT,
    NO_EXTRA_KEY,
    NO_MISSING_KEY,
    ONCE,
    RIGHT_STORE,
    WHOLE_PARTITIONS,
    folds_to,
)
from include.settings import Settings
from spark_jobs.quality import check
from spark_jobs.quality.stores.changelog import ChangelogStore
from spark_jobs.runtime.session import session_settings
from tests.support.lake.checked_ledger import CheckedLedger, Record, failed, named

KEY = "customer 7/é"
CUSTOMERS, EVENTS_EACH = 40, 5
RUN_ID = "manual__2026-01-01T00:00:00+00:00"
# All records of this source partition are lost; the other faults are planted in keys of other partitions.
LOST_PARTITION = 2
# A check of many events compiles and adapts its queries, unlike the other checks here.
MANY_EVENTS = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}


@dataclass(frozen=True)
class Fault:
    """A fault planted in one key.

    plant: maps the key's correct records after each event to the stored records. stored, replayed: the reported amounts.
    extra_key: the reported key, if it is not the key in which the fault was planted.
    """

    plant: Callable[[list[Record]], list[Record]]
    expectations: frozenset[str]
    stored: str | None
    replayed: str | None
    extra_key: str = ""


AMOUNT, COUNT = folds_to("amount"), folds_to("event_count")
FAULTS = {
    "amount off": Fault(lambda right: [right[-1].plus(cents=1)], frozenset({AMOUNT}), "15.01", "15.00"),
    "event folded twice": Fault(
        lambda right: [right[-1].plus(cents=500, events=1)], frozenset({AMOUNT, COUNT}), "20.00", "15.00"
    ),
    "event skipped": Fault(
        lambda right: [right[-1].plus(cents=-200, events=-1)], frozenset({AMOUNT, COUNT}), "13.00", "15.00"
    ),
    "newest event missing": Fault(lambda right: [right[-2]], frozenset({COMPLETE}), "10.00", "10.00"),
    "key missing": Fault(lambda _: [], frozenset({NO_MISSING_KEY}), None, "15.00"),
    "extra key": Fault(
        lambda right: [right[-1], replace(right[-1], key="unknown")],
        frozenset({NO_EXTRA_KEY}),
        "15.00",
        None,
        extra_key="unknown",
    ),
    "key twice": Fault(lambda right: [right[-1]] * 2, frozenset({ONCE}), "15.00", "15.00"),
}


@dataclass(frozen=True)
class Checks:
    """The results of a full check and of a sample of the same table.

    keys: fault -> the key that must be reported. lost: the keys of the lost partition.
    """

    full: CheckResult
    sample: CheckResult
    keys: dict[str, str]
    lost: frozenset[str]


@pytest.fixture(scope="module")
def ledger(settings: Settings) -> CheckedLedger:
    """Some customers with several events each."""
    ledger = CheckedLedger(settings.changed(quality_sample_keys=10), "faulty")
    ledger.append(CUSTOMERS, EVENTS_EACH)
    ledger.write_changelog(ledger.records.values())
    return ledger


@pytest.fixture(scope="module")
def right(ledger: CheckedLedger, lake_spark: SparkSession) -> Checks:
    """Check correct records; then a sample of them, with no lag allowed and a tag that is far behind the rows."""
    ledger.write_lake(lake_spark, ledger.records.values())
    full = ledger.check(lake_spark, StoreName.LAKE, StoreName.CHANGELOG, run_id=RUN_ID)
    # As after a stream that stopped before committing its offsets.
    ledger.write_lake(lake_spark, ledger.records.values(), complete_up_to=Offsets())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "settings", ledger.settings.changed(quality_max_lake_age_s=1e-6))
        sample = ledger.check(lake_spark, StoreName.LAKE, mode=Mode.SAMPLE)
    return Checks(full, sample, {}, frozenset())


@pytest.fixture(scope="module")
def faulty(ledger: CheckedLedger, right: Checks, lake_spark: SparkSession) -> Checks:
    """Check once after all faults are planted, each in a separate key, with the same run id as `right`."""
    assert right.full.request.run_id == RUN_ID
    partitions = ledger.settings.topics.partitions
    lost = {key for key in ledger.history if murmur2(key.encode(), partitions) == LOST_PARTITION}
    faulty_keys = dict(zip(FAULTS, (key for key in ledger.history if key not in lost), strict=False))
    stored = [record for key, record in ledger.records.items() if key not in lost | set(faulty_keys.values())]
    for name, key in faulty_keys.items():
        stored += FAULTS[name].plant(ledger.history[key])
    ledger.write_lake(lake_spark, stored)
    with pytest.MonkeyPatch.context() as patch, session_settings(lake_spark, MANY_EVENTS):
        patch.setattr(check, "SMALL_LOG_EVENTS", 0)
        full = ledger.check(lake_spark, StoreName.LAKE, run_id=RUN_ID)
    sample = ledger.check(lake_spark, StoreName.LAKE, mode=Mode.SAMPLE)
    named_keys = {name: FAULTS[name].extra_key or key for name, key in faulty_keys.items()}
    return Checks(full, sample, named_keys, frozenset(lost))


def test_correct_records_pass(right: Checks) -> None:
    result = right.full

    assert (failed(result), named(result)) == ({}, {})
    assert result.passed
    assert (result.records, result.events) == (2 * CUSTOMERS, CUSTOMERS * EVENTS_EACH)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_the_lake_is_named(faulty: Checks, name: str) -> None:
    fault, key = FAULTS[name], faulty.keys[name]

    (failing,) = (found for found in faulty.full.failing_keys if found.key == key)

    assert (failing.place, frozenset(failing.expectations)) == ("lake", fault.expectations)
    assert (failing.stored.get("amount"), failing.replayed.get("amount")) == (fault.stored, fault.replayed)
    sampling = {e.expectation for e in faulty.full.expectations if {"place": "lake", "key": key} in e.sample}
    assert sampling == fault.expectations


def test_a_truncated_partition_is_named(faulty: Checks) -> None:
    missing = {key for key, expectations in named(faulty.full).items() if expectations == (NO_MISSING_KEY,)}
    (truncated,) = (e for e in faulty.full.expectations if e.expectation == WHOLE_PARTITIONS)

    assert missing - {faulty.keys["key missing"]} == faulty.lost
    assert truncated.sample == ({"place": "lake", "partition": str(LOST_PARTITION)},)


def test_nothing_but_the_planted_faults_is_found(faulty: Checks) -> None:
    planted = Counter(expectation for fault in FAULTS.values() for expectation in fault.expectations)

    assert failed(faulty.full) == planted + Counter({NO_MISSING_KEY: len(faulty.lost), WHOLE_PARTITIONS: 1})
    assert named(faulty.full).keys() == {*faulty.keys.values(), *faulty.lost}


@pytest.fixture(scope="module")
def outdated(ledger: CheckedLedger, right: Checks, lake_spark: SparkSession) -> CheckResult:
    """Check a table that contains another version and lacks one event."""
    assert right.full.passed
    others = [record for record in ledger.records.values() if record.key != KEY]
    stored = [*others, ledger.history[KEY][-2]]
    ledger.write_lake(lake_spark, stored, version=2, complete_up_to=Offsets())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "settings", ledger.settings.changed(quality_max_lake_age_s=1e-6))
        # As if version 1 had been live for a long time: the lake has half an hour to follow a promotion.
        patch.setattr(target, "LAKE_FOLLOWS_WITHIN_S", 0.0)
        return ledger.check(lake_spark, StoreName.LAKE)


@pytest.mark.endurance
def test_a_table_of_another_version_is_named(outdated: CheckResult) -> None:
    assert failed(outdated) == {RIGHT_STORE: 1, FRESH: 1}
    assert "the lake holds version 2, not version 1" in outdated.verdict


@pytest.mark.endurance
def test_a_table_is_as_old_as_the_first_event_that_it_lacks(right: Checks, outdated: CheckResult) -> None:
    assert right.sample.passed, right.sample.verdict
    assert failed(outdated)[FRESH] == 1


@pytest.fixture(scope="module")
def stopped(settings: Settings) -> CheckedLedger:
    """A changelog whose newest record of each key contains two of three events."""
    ledger = CheckedLedger(settings, "stopped")
    ledger.append(10, 3)
    ledger.write_changelog(history[1] for history in ledger.history.values())
    return ledger


@pytest.fixture(scope="module")
def after_the_stop(stopped: CheckedLedger, lake_spark: SparkSession) -> CheckResult:
    return stopped.check(lake_spark, StoreName.CHANGELOG)


@pytest.mark.endurance
def test_a_stopped_stream_is_reported_as_behind(after_the_stop: CheckResult) -> None:
    assert failed(after_the_stop) == {COMPLETE: 10}
    assert "not complete: changelog is behind by 10 events" in after_the_stop.verdict


@pytest.mark.endurance
@pytest.mark.usefixtures("after_the_stop")
def test_the_check_waits_for_an_event_in_flight(
    stopped: CheckedLedger, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopped, "settings", stopped.settings.changed(quality_wait_s=60.0))
    current, attempts = ChangelogStore.current, itertools.count(1)

    def written_before_the_second_attempt(store: ChangelogStore, wanted: DataFrame) -> DataFrame:
        if next(attempts) == 2:
            stopped.write_changelog(stopped.records.values())
        return current(store, wanted)

    monkeypatch.setattr(ChangelogStore, "current", written_before_the_second_attempt)

    result = stopped.check(lake_spark, StoreName.CHANGELOG)

    assert result.passed, result.verdict


def test_a_sample_is_a_part_of_the_keys_but_all_are_counted(right: Checks, faulty: Checks) -> None:
    assert right.sample.passed, right.sample.verdict
    assert 0 < right.sample.keys < CUSTOMERS
    assert right.sample.events == CUSTOMERS * EVENTS_EACH
    assert failed(faulty.sample)[KEY_COUNT] == 1


def test_the_report_shows_both_values(faulty: Checks) -> None:
    page = Path(faulty.full.report).read_text(encoding="utf-8")

    assert "15.01" in page
    assert "15.00" in page
    assert faulty.keys["amount off"] in page
    assert Path(faulty.full.report).name == "manual__2026-01-01T00-00-00-00-00.html"


def test_a_repeated_run_replaces_its_results(
    ledger: CheckedLedger, right: Checks, faulty: Checks, lake_spark: SparkSession
) -> None:
    # As if the first attempt of the run had been killed before its verdict.
    assert right.full.request.run_id == faulty.full.request.run_id

    table = lake_spark.read.format("delta").load(quality_path(ledger.settings.lake_root))

    rows = {row.expectation: row for row in table.where(table.run_id == RUN_ID).collect()}
    assert len(rows) == table.where(table.run_id == RUN_ID).count() == len(faulty.full.expectations)
    assert {name for name, row in rows.items() if not row.passed} == failed(faulty.full).keys()
    wrong = rows[ONCE]
    assert (wrong.read_model, wrong.version, wrong.store, wrong.mode) == ("faulty", 1, "lake", "full")
    # One row for each required key, one for the second copy and one for the extra key.
    assert (wrong.checked, wrong.failed) == (CUSTOMERS + 2, 1)
    assert json.loads(wrong.sample) == [{"place": "lake", "key": faulty.keys["key twice"]}]
    assert wrong.report == faulty.full.report
