"""A check reads the events that are proved to be in the event table from there; one that another program has changed is not used."""

from decimal import Decimal

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from include.declarations.topic_tables import load_lake_catalog
from include.lake.tables import table_path
from include.quality.check import CheckRequest, CheckResult, Mode, StoreName, UncheckableError
from include.replay.check.run import run_check
from include.replay.explain.__main__ import explanation
from include.replay.table_proof import compare_with_log
from include.settings import Settings
from include.versions.explanation import object_of
from include.versions.key_explanation import VersionsOfKey
from spark_jobs.event_tables import append_new
from tests.support.lake.both_engines import checked_by_both
from tests.support.lake.checked_ledger import ONE_FOR_ALL, CheckedLedger, failed, named
from tests.support.lake.explained_by_both import explained_by_both

STORES = (StoreName.CHANGELOG,)


class TableLedger(CheckedLedger):
    """A ledger whose topic has an event table."""

    @property
    def table(self) -> str:
        """The event table's name."""
        return f"events/{self.name}"

    def append_to_table(self, spark: SparkSession) -> None:
        """Append the new events to the table, and prove it."""
        declared = load_lake_catalog(self.settings).event_tables[self.table]
        assert append_new(spark, self.settings, declared) is not None
        assert compare_with_log(self.settings, declared).is_exact

    def events_of(self, mode: Mode = Mode.FULL, *, from_log: bool = False) -> CheckResult:
        """Check with DuckDB."""
        return run_check(self.settings, CheckRequest(self.name, STORES, mode, "sources", from_log=from_log))


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

    assert ledger.events_of().event_sources == (
        "8 events from lake/events/tabled, as they were proved against the log; 4 from the log"
    )
    assert ledger.events_of(Mode.SAMPLE).event_sources.startswith("8 events from lake/events/tabled")
    from_log = ledger.events_of(from_log=True)
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
    own = ledger.events_of()
    assert (list(named(own)), own.event_sources[:8]) == ([wrong.key], "6 events")
    assert failed(own) == failed(result)


def test_a_table_that_was_changed_since_it_was_proved_is_not_used(
    settings: Settings, lake_spark: SparkSession
) -> None:
    ledger = TableLedger(settings, "tabled-changed")
    ledger.append(3, 3)
    ledger.append_to_table(lake_spark)
    ledger.write_changelog(ledger.records.values())
    table = DeltaTable(table_path(settings.lake_root, ledger.table))
    assert table.update(predicate="amount = 2.00", updates={"amount": "CAST(2.01 AS DECIMAL(18, 2))"})[
        "num_updated_rows"
    ]

    result = ledger.events_of()

    assert result.passed
    assert result.event_sources == (
        "9 events from the log: lake/events/tabled-changed was changed since it was proved"
    )
    # An explanation, which is compared with the served state, does not compute the digest of the whole table. It shows events of the log.
    versions = VersionsOfKey.of(settings.kafka.bootstrap_servers, ledger.model, None)
    changed = explanation(ledger.settings, ledger.model, "customer 1/é", versions, 1, ())
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
        ledger.events_of()


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

    result = ledger.events_of()

    assert result.passed
    assert result.event_sources.startswith(
        "6 events from the log: lake/events/tabled-times lacks columns that the rules use"
    )
    assert Decimal(0) < sum(record.amount for record in ledger.records.values())
