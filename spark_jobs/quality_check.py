"""Application: checks stored records against the log.

Exit status 0: passed, 1: failed, 69: the read model cannot be checked, 75: the check did not complete; retry later.
"""

import argparse
import logging
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from include.process import die_with_parent
from include.quality import report, results, verified_stores
from include.quality.check import CheckRequest, CheckResult, Mode, StoreName, UncheckableError
from include.quality.verified_stores import VerifiedStores
from include.settings import Settings
from include.versions.version_lock import staging_lock
from spark_jobs.quality.run import run_check
from spark_jobs.runtime.lake_job import lake_session
from spark_jobs.runtime.session import configure_logging

LOG = logging.getLogger("foldlake.quality")
PASSED, FAILED = 0, 1
# EX_UNAVAILABLE of sysexits.h: the read model cannot be checked at all.
UNCHECKABLE = 69
# EX_TEMPFAIL of sysexits.h: no verdict; retry later.
NO_VERDICT = 75
# A killed job releases its lock within a second.
LOCK_WAIT_S = 60.0


def main() -> None:
    """Run under spark-submit."""
    request = parse(sys.argv[1:])
    configure_logging()
    die_with_parent()
    settings = Settings()
    try:
        with lake_session("quality", settings) as spark, _staging_kept(settings.home, request):
            status = PASSED if check(spark, settings, request).passed else FAILED
    except UncheckableError as error:
        LOG.error("%s", error)  # noqa: TRY400 - its message is complete without a traceback
        status = UNCHECKABLE
    except Exception as error:
        # An uncaught exception would exit with status 1, like a failed check.
        LOG.exception("the check did not complete: %s", error)  # noqa: TRY401 - Spark's errors have the cause in their first line
        status = NO_VERDICT
    sys.exit(status)


def _staging_kept(home: Path, request: CheckRequest) -> AbstractContextManager[None]:
    """Keep the staging table that a check reads, and the place of what it verifies, from being removed during a block of code."""
    if request.version is None or StoreName.STAGING not in request.stores:
        return nullcontext()
    return staging_lock(home, request.read_model, request.version, wait_s=LOCK_WAIT_S)


def parse(arguments: list[str]) -> CheckRequest:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--read-model", required=True, help="name of the read model")
    parser.add_argument("--version", type=int, help="the version to check (default: the live one)")
    parser.add_argument(
        "--stores",
        default="lake,nodes",
        help="comma-separated list of lake, nodes, changelog, staging (default: lake,nodes)",
    )
    parser.add_argument(
        "--mode", choices=[m.value for m in Mode], default=Mode.FULL.value, help="default: full"
    )
    parser.add_argument(
        "--run-id", required=True, help="identifies the run in the table of results and in the report"
    )
    options = parser.parse_args(arguments)
    try:
        stores = tuple(StoreName(name.strip()) for name in options.stores.split(",") if name.strip())
    except ValueError as error:
        parser.error(f"--stores: {error}; allowed: {', '.join(StoreName)}")
    if not stores:
        parser.error("--stores: name at least one")
    return CheckRequest(options.read_model, stores, Mode(options.mode), options.run_id, options.version)


def check(spark: SparkSession, settings: Settings, request: CheckRequest) -> CheckResult:
    """Run the check, write how far it has verified, the page and the results, alert on a failure, and write the verdict last.

    Returns the result. May be killed and repeated at any point: without a verdict everything is repeated, and the results replace those of the
    run's earlier attempt. Raises UncheckableError after writing it as the verdict; another FoldlakeError when the check
    cannot complete.
    """
    started_s = time.monotonic()
    report.remove(settings.home, request.run_id)
    try:
        result = run_check(spark, settings, request)
    except UncheckableError as error:
        report.write_uncheckable(settings.home, request, str(error), time.monotonic() - started_s)
        raise
    result = replace(
        result,
        report=str(report.report_path(settings.home, request.run_id)),
        report_url=report.report_url(settings.reports_base_url, request.run_id),
    )
    if result.verified:
        stores = VerifiedStores(request.read_model, result.version, result.verified)
        verified_stores.write(settings.home, stores)
    report.write_page(settings.home, result)
    try:
        results.record(
            settings.lake_root,
            settings.lake.retention_h,
            settings.retention.quality_results_h,
            result,
        )
    finally:
        # Alert even when the lake's storage is unavailable.
        if not result.passed:
            report.alert(settings.quality.alert_webhook_url, result)
    report.write_summary(settings.home, result)
    LOG.info("%s. Report: %s (%s)", result.verdict, result.report, result.report_url)
    return result


if __name__ == "__main__":
    main()
