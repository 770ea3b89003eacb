"""Runs a check with both engines, which must find the same."""

from dataclasses import asdict, replace
from typing import Any

from pyspark.sql import SparkSession

from include.quality.check import CheckRequest, CheckResult
from include.replay.check.run import run_check
from include.settings import Settings
from spark_jobs.quality_check import check


def checked_by_both(spark: SparkSession, settings: Settings, request: CheckRequest) -> CheckResult:
    """Check with Spark and with DuckDB, and return the result of Spark, as it is published."""
    found = check(spark, settings, request)
    other = run_check(settings, request)
    others = findings_of(other)
    for name, finding in findings_of(found).items():
        of_spark, of_duckdb = _differing(finding, others[name])
        assert of_duckdb == of_spark, f"{name} with DuckDB: {of_duckdb}, with Spark: {of_spark}"
    return found


def _differing(left: Any, right: Any) -> tuple[Any, Any]:  # noqa: ANN401 - findings
    """Return the items of two lists that the other one lacks; other values unchanged."""
    if not isinstance(left, list):
        return left, right
    return [one for one in left if one not in right], [one for one in right if one not in left]


def findings_of(result: CheckResult) -> dict[str, Any]:
    """Return what two engines must agree about: not times, and not what they have kept of earlier checks."""
    marks = {
        store: asdict(replace(mark, cut_at_s=0.0, full_run_id="", full_at_s=0.0))
        for store, mark in result.verified.items()
    }
    return {
        "verdict": replace(result, verified={}).verdict,
        "expectations": sorted(
            (str(one.store), one.expectation, one.checked, one.failed, one.finding)
            for one in result.expectations
        ),
        "failing keys": [asdict(one) for one in result.failing_keys],
        "failing keys in all": result.failing_keys_total,
        "numbers": (result.events, result.keys, result.records, result.all_keys),
        "findings": result.findings,
        "places": result.places,
        "mode": (str(result.request.mode), result.full_check_reason),
        "verified": marks,
        "unwritten": result.unwritten_total,
    }
