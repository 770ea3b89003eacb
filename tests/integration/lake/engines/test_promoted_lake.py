"""A check of the live version waits while the lake contains another one, as after a promotion."""

import itertools

import pytest
from pyspark.sql import SparkSession

from include.quality.check import CheckRequest, Mode, StoreName
from include.replay.check.run import run_check
from include.replay.check.target import CheckTarget
from include.settings import Settings
from spark_jobs.quality_check import check
from tests.support.lake.checked_ledger import CheckedLedger


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_the_check_waits_for_a_promotion_to_reach_the_lake(
    settings: Settings, lake_spark: SparkSession, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    ledger = CheckedLedger(settings, f"promoted-meanwhile-{engine}")
    ledger.settings = ledger.settings.changed(quality_wait_s=60.0)
    ledger.append(3, 2)
    ledger.write_lake(lake_spark, ledger.records.values(), version=2)
    opened, attempts = CheckTarget.of, itertools.count(1)

    def promoted_before_the_second_attempt(settings: Settings, request: CheckRequest) -> CheckTarget:
        if next(attempts) == 2:
            ledger.promote_version_2()
        return opened(settings, request)

    monkeypatch.setattr(CheckTarget, "of", promoted_before_the_second_attempt)
    request = CheckRequest(ledger.name, (StoreName.LAKE,), Mode.FULL, "promoted")

    result = (
        run_check(ledger.settings, request)
        if engine == "duckdb"
        else check(lake_spark, ledger.settings, request)
    )

    assert result.passed, result.verdict
    assert result.version == 2
