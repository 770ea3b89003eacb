"""A decoder that rounds: the check of its engine names the key whose amount it has rounded, and that of the other engine passes."""

from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from include.quality.check import CheckRequest, CheckResult, Mode, StoreName
from include.replay.check.run import run_check
from include.replay.table_proof import compare_with_log
from include.settings import Settings
from spark_jobs.event_tables import append_new
from spark_jobs.quality_check import check
from tests.support.faults.rounding_decoders import round_in_spark, round_without_spark
from tests.support.lake.checked_ledger import TableLedger

ROUNDED = "customer with cents"


@pytest.fixture(scope="module")
def ledger(settings: Settings) -> TableLedger:
    """Amounts without cents, except for one customer; the records are right."""
    ledger = TableLedger(settings.changed(systems=()), "decoded")
    ledger.append(4, 2)
    ledger.add(ROUNDED, Decimal("1.24"))
    ledger.source.flush()
    ledger.write_changelog(ledger.records.values())
    return ledger


def request(ledger: TableLedger) -> CheckRequest:
    return CheckRequest(ledger.name, (StoreName.CHANGELOG,), Mode.FULL, "rounded", from_log=True)


def assert_rounded(result: CheckResult, ledger: TableLedger) -> None:
    (failing,) = result.failing_keys
    record = ledger.records[ROUNDED]
    assert (failing.key, failing.stored["amount"], failing.replayed["amount"]) == (ROUNDED, "1.24", "1.20")
    assert failing.stored["source_offset"] == str(record.source_offset)


def test_sparks_decoder(ledger: TableLedger, lake_spark: SparkSession) -> None:
    record = ledger.records[ROUNDED]
    with pytest.MonkeyPatch.context() as patch:
        round_in_spark(patch, "FundsAdded", "amount")
        result = check(lake_spark, ledger.settings, request(ledger))
        append_new(lake_spark, ledger.settings, ledger.declared)

    assert_rounded(result, ledger)
    assert run_check(ledger.settings, request(ledger)).passed
    # Spark writes event tables, too.
    table = compare_with_log(ledger.settings, ledger.declared)
    assert (table.changed, table.missing, table.surplus) == (1, 0, 0)
    assert table.named == (
        (
            f"partition {record.source_partition}, offset {record.source_offset}, key {ROUNDED}: "
            "amount 1.24 in the log, 1.20 in the table"
        ),
    )


def test_the_decoder_of_duckdbs_check(
    ledger: TableLedger, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    round_without_spark(monkeypatch, "amount")

    assert_rounded(run_check(ledger.settings, request(ledger)), ledger)
    assert check(lake_spark, ledger.settings, request(ledger)).passed
