"""A check that is handed to Spark's job says so in its report; Spark decides what is wrong, and what it does not confirm is a finding."""

import json

import pytest
from pyspark.sql import SparkSession

from include.quality.check import CheckRequest, Mode, StoreName
from include.quality.check_run import FAILED, PASSED, SparkReason
from include.quality.report import summary_path
from include.settings import CheckEngine, Settings
from spark_jobs.quality_check import check
from stack.launchers.direct_submit import run_check
from tests.support.lake.checked_ledger import CheckedLedger

REFUTED = "1 failing key, the first 'customer 1/é' in changelog (no key is missing)"


@pytest.fixture(scope="module")
def ledger(settings: Settings) -> CheckedLedger:
    """Some customers, whose correct records are in the changelog."""
    ledger = CheckedLedger(settings.changed(check_engine=CheckEngine.SPARK), "handed-on")
    ledger.append(3, 2)
    ledger.write_changelog(ledger.records.values())
    return ledger


def request(ledger: CheckedLedger, run_id: str) -> CheckRequest:
    return CheckRequest(ledger.name, (StoreName.CHANGELOG,), Mode.FULL, run_id)


def test_the_reason_reaches_the_report_of_sparks_job(ledger: CheckedLedger) -> None:
    assert run_check(ledger.settings, request(ledger, "handed on")) == PASSED

    summary = json.loads(summary_path(ledger.settings.home, "handed on").read_text(encoding="utf-8"))
    assert summary["passed"]
    assert (summary["engine"], summary["engine_reason"]) == ("spark", "FOLDLAKE_CHECK_ENGINE is spark")


def test_a_failure_that_spark_does_not_confirm_is_a_finding(
    ledger: CheckedLedger, lake_spark: SparkSession
) -> None:
    reason = SparkReason.of("DuckDB found 1 failing key: Spark checks again", REFUTED)

    result = check(lake_spark, ledger.settings, request(ledger, "disputed"), reason)

    assert result.passed
    assert f"the engines disagree: DuckDB found {REFUTED}, and Spark did not" in result.verdict


def test_the_verdict_on_a_wrong_record_is_sparks(settings: Settings) -> None:
    ledger = CheckedLedger(settings.changed(check_engine=CheckEngine.AUTO), "wrong")
    ledger.append(3, 2)
    wrong, *right = ledger.records.values()
    ledger.write_changelog([wrong.plus(cents=1), *right])

    assert run_check(ledger.settings, request(ledger, "wrong")) == FAILED

    summary = json.loads(summary_path(ledger.settings.home, "wrong").read_text(encoding="utf-8"))
    assert not summary["passed"]
    assert (summary["engine"], summary["failing_keys_total"]) == ("spark", 1)
    assert summary["engine_reason"]
