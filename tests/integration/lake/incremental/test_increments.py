"""An incremental check goes on from what the last check verified, and finds the faults in the records with new events."""

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from include.quality import verified_stores
from include.quality.check import Mode, StoreName
from include.quality.verified_tag import VerifiedMark
from include.replay.key_expectations import COMPLETE, KEY_COUNT, NO_MISSING_KEY, ONCE, folds_to
from include.settings import Settings
from spark_jobs.folding.replay import source_ends
from tests.support.lake.checked_ledger import CheckedLedger, failed, named
from tests.support.lake.incremental_ledger import (
    CHANGED,
    CUSTOMERS,
    EVENTS_EACH,
    NEW,
    UNCHANGED,
    IncrementalLedger,
    assert_only_changes_were_checked,
)

AMOUNT = folds_to("amount")


@pytest.fixture(scope="module")
def verified(settings: Settings, lake_spark: SparkSession) -> IncrementalLedger:
    """A ledger that has passed a full check; each test leaves it verified."""
    return IncrementalLedger.verified(settings, "increments", lake_spark)


def verified_mark(ledger: CheckedLedger) -> VerifiedMark:
    found = verified_stores.read(ledger.settings.home, ledger.name)
    assert found is not None
    return found.stores["lake"]


def test_an_incremental_check_replays_only_new_events(
    settings: Settings, verified: IncrementalLedger
) -> None:
    ledger = verified
    full = verified_mark(ledger)

    ledger.change_and_store()
    result = ledger.check_changed()

    assert result.passed, result.verdict + str(result.failing_keys)
    assert (result.request.mode, result.full_check_reason) == (Mode.INCREMENTAL, "")
    assert (result.records, result.events) == (len(CHANGED), len(CHANGED))
    mark = verified_mark(ledger)
    assert mark.verified_up_to == source_ends(settings.kafka_connection, ledger.name)
    assert sum(mark.keys.values()) == CUSTOMERS + 1
    assert mark.cut_at_s > full.cut_at_s
    assert mark.full_at_s == full.full_at_s


@pytest.mark.endurance
def test_without_new_events_the_keys_are_counted(settings: Settings, lake_spark: SparkSession) -> None:
    ledger = IncrementalLedger.verified(settings, "quiet", lake_spark)

    quiet = ledger.check_changed()
    ledger.store(record for record in ledger.records.values() if record.key != UNCHANGED)
    lost = ledger.check_changed()
    ledger.store([*ledger.records.values(), replace(ledger.records[UNCHANGED], key="unknown")])
    surplus = ledger.check_changed()

    assert (quiet.passed, quiet.request.mode, quiet.keys) == (True, Mode.INCREMENTAL, 0)
    assert failed(lost) == {KEY_COUNT: 1}
    assert failed(surplus) == {KEY_COUNT: 1}


def test_faults_in_changed_records_are_named(verified: IncrementalLedger) -> None:
    ledger = verified
    ledger.change()
    right = dict(ledger.records)
    wrong, stale, twice, missing, _ = CHANGED
    others = [record for key, record in right.items() if key not in CHANGED]
    faulty = [right[wrong].plus(cents=1), ledger.history[stale][-2], right[twice], right[twice]]
    ledger.store([*others, *faulty, right[NEW]])

    faults = ledger.check_changed()
    ledger.store(right.values())
    mended = ledger.check_changed()

    assert named(faults) == {wrong: (AMOUNT,), stale: (COMPLETE,), twice: (ONCE,), missing: (NO_MISSING_KEY,)}
    assert faults.request.mode is Mode.INCREMENTAL
    # Nothing of the failed check was kept.
    assert_only_changes_were_checked(mended)


@pytest.mark.endurance
def test_a_wrong_cent_in_an_unchanged_record_is_found_by_the_full_check(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = IncrementalLedger.verified(settings, "unchanged", lake_spark)
    ledger.change()
    ledger.store(record.plus(cents=int(key == UNCHANGED)) for key, record in ledger.records.items())

    incremental, full = ledger.check_changed(), ledger.check_all()

    assert incremental.passed, incremental.verdict
    assert named(full) == {UNCHANGED: (AMOUNT,)}


@pytest.mark.endurance
def test_a_record_older_than_the_verified_one_is_replayed_from_the_first_event(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = IncrementalLedger.verified(settings, "set-back", lake_spark)
    key, *_ = CHANGED
    ledger.change([key])
    records = dict(ledger.records) | {key: ledger.history[key][0]}
    ledger.store(records.values())

    result = ledger.check_changed()

    assert "newer versions of 1 record were" in result.full_check_reason
    assert named(result) == {key: (COMPLETE,)}
    assert result.events == CUSTOMERS * EVENTS_EACH + 1


@pytest.mark.endurance
def test_each_check_goes_on_from_the_records_of_the_one_before(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = IncrementalLedger.verified(settings, "rewritten", lake_spark)

    for _ in range(3):
        ledger.change_and_store()
        result = ledger.check_changed()

        assert_only_changes_were_checked(result)


@pytest.mark.endurance
def test_a_store_that_was_not_verified_is_checked_in_full(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = IncrementalLedger.verified(settings, "other-store", lake_spark)
    ledger.write_changelog(ledger.records.values())

    result = ledger.check(lake_spark, StoreName.LAKE, StoreName.CHANGELOG, mode=Mode.INCREMENTAL)

    assert result.passed, result.verdict
    assert result.request.mode is Mode.FULL
    assert "records of changelog" in result.full_check_reason
