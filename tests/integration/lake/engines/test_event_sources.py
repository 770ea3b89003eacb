"""A check reads the events that are proved to be in the event table from there; one that another program has changed is not used."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from include.quality.check import CheckRequest, CheckResult, Mode, StoreName, UncheckableError
from include.replay.check.run import run_check
from include.replay.explain.__main__ import explanation
from include.settings import Settings
from include.versions.explanation import object_of
from include.versions.key_explanation import VersionsOfKey
from tests.support.lake.both_engines import checked_by_both
from tests.support.lake.checked_ledger import ONE_FOR_ALL, TableLedger, failed, named
from tests.support.lake.explained_by_both import explained_by_both

STORES = (StoreName.CHANGELOG,)


def events_of(ledger: TableLedger, mode: Mode = Mode.FULL, *, from_log: bool = False) -> CheckResult:
    """Check with DuckDB."""
    return run_check(ledger.settings, CheckRequest(ledger.name, STORES, mode, "sources", from_log=from_log))


@pytest.fixture(scope="module")
def ledger(settings: Settings, lake_spark: SparkSession) -> TableLedger:
    """Eight events in the table, four only in the log, and correct records."""
    ledger = TableLedger(settings.changed(systems=()), "tabled")
    ledger.append(4, 2)
    ledger.append_to_table(lake_spark)
    ledger.append(4, 1)
    ledger.write_changelog(ledger.records.values())
    return ledger


def test_the_report_says_what_was_read_from_where(ledger: TableLedger, lake_spark: SparkSession) -> None:
    result = checked_by_both(
        lake_spark, ledger.settings, CheckRequest(ledger.name, STORES, Mode.FULL, "both")
    )
    assert result.passed

    assert events_of(ledger).event_sources == (
        "8 events from lake/events/tabled, as proved against the log; 4 from the log"
    )
    assert events_of(ledger, Mode.SAMPLE).event_sources.startswith("8 events from lake/events/tabled")
    from_log = events_of(ledger, from_log=True)
    assert (from_log.passed, from_log.events, from_log.event_sources) == (True, 12, "12 events from the log")


def test_an_explanation_folds_the_table_and_shows_the_events_of_the_log(
    ledger: TableLedger, lake_spark: SparkSession
) -> None:
    key = "customer 1/é"
    for limit, numbers in ((4, [1, 2, 3]), (1, [1, 3])):
        found = explained_by_both(lake_spark, ledger.settings, ledger.model, key, None, limit, ())
        assert [event.number for event in found.events] == numbers
    assert object_of(found.events[-1].state) == {"amount": ledger.records[key].amount}


def test_a_wrong_record_is_found_with_events_of_the_table(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = TableLedger(settings, "tabled-wrong")
    ledger.append(3, 2)
    ledger.append_to_table(lake_spark)
    wrong, *right = ledger.records.values()
    ledger.write_changelog([wrong.plus(cents=1), *right])

    result = ledger.check(lake_spark, *STORES)

    assert list(named(result)) == [wrong.key]
    own = events_of(ledger)
    assert (list(named(own)), own.event_sources[:8]) == ([wrong.key], "6 events")
    assert failed(own) == failed(result)


def change(table: DeltaTable) -> None:
    """Change the value of an event."""
    table.update(predicate="amount = 2.00", updates={"amount": "CAST(2.01 AS DECIMAL(18, 2))"})


def double(table: DeltaTable) -> None:
    """Append the rows of some events again."""
    write_deltalake(table, table.to_pyarrow_table(filters=[("amount", "=", Decimal("2.00"))]), mode="append")


def remove(table: DeltaTable) -> None:
    """Leave a gap."""
    table.delete("amount = 2.00")


@pytest.fixture(scope="module")
def changeable(settings: Settings, lake_spark: SparkSession) -> TableLedger:
    """Nine events in the table, and correct records. Each test restores the table."""
    ledger = TableLedger(settings, "tabled-changed")
    ledger.append(3, 3)
    ledger.append_to_table(lake_spark)
    ledger.write_changelog(ledger.records.values())
    return ledger


@pytest.mark.parametrize("plant", [change, double, remove])
def test_a_table_that_was_changed_since_it_was_proved_is_not_used(
    changeable: TableLedger, lake_spark: SparkSession, plant: Callable[[DeltaTable], None]
) -> None:
    table = DeltaTable(changeable.table_path)
    right = table.version()
    plant(table)

    checked_by_both(
        lake_spark, changeable.settings, CheckRequest(changeable.name, STORES, Mode.FULL, plant.__name__)
    )
    result = events_of(changeable)

    DeltaTable(changeable.table_path).restore(right)
    assert result.passed
    assert result.event_sources == (
        "9 events from the log: lake/events/tabled-changed was changed since it was proved"
    )


def test_an_explanation_shows_events_of_the_log_if_the_table_was_changed(changeable: TableLedger) -> None:
    # It is compared with the served state, and does not compute the digest of the whole table.
    table = DeltaTable(changeable.table_path)
    right = table.version()
    change(table)
    settings = changeable.settings
    versions = VersionsOfKey.of(settings.kafka_connection, changeable.model, None)

    changed = explanation(settings, changeable.model, "customer 1/é", versions, 1, ())

    DeltaTable(changeable.table_path).restore(right)
    assert [object_of(event.state) for event in changed.events] == [
        {"amount": Decimal("1.00")},
        {"amount": Decimal("6.01")},
    ]


def test_keys_over_several_partitions_are_refused_with_events_of_the_table(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = TableLedger(settings, "tabled-keys", key=ONE_FOR_ALL)
    ledger.append(4, 2)
    ledger.append_to_table(lake_spark)
    ledger.write_changelog([])

    with pytest.raises(UncheckableError, match="key 'all' in partitions"):
        events_of(ledger)


def test_a_rule_that_uses_the_record_reads_the_log(settings: Settings, lake_spark: SparkSession) -> None:
    module = """
from dataclasses import replace
from include.read_models.balance import model
DECLARATIONS = [replace(model.READ_MODEL, name={name!r}, source_topic={name!r}, key={key},
    folds={{1: dict(model.READ_MODEL.folds[1], amount="sum(if(timestamp IS NULL, 0, amount))")}})]
"""
    ledger = TableLedger(settings, "tabled-times", module=module)
    ledger.append(3, 2)
    ledger.append_to_table(lake_spark)
    ledger.write_changelog(ledger.records.values())

    result = events_of(ledger)

    assert result.passed
    assert result.event_sources.startswith(
        "6 events from the log: lake/events/tabled-times lacks columns that the rules use"
    )
    assert Decimal(0) < sum(record.amount for record in ledger.records.values())
