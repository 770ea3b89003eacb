"""A quality check from its command line to its verdict, whichever engine compares the records: Spark's job and the program without Spark.

Exit status 0: passed, 1: failed, 3: Spark's job must check, 69: the read model cannot be checked, 75: the check did not complete; retry later.
A failed check is final, and one without a verdict is retried: a broker that restarts must not block a promotion.
"""

import argparse
import logging
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from include.errors import FoldlakeError
from include.files import shared_umask
from include.quality import report, results, verified_stores
from include.quality.check import CheckRequest, CheckResult, Mode, StoreName, UncheckableError
from include.quality.verified_stores import VerifiedStores
from include.settings import CheckEngine, Settings
from include.versions.version_lock import staging_lock

LOG = logging.getLogger("foldlake.quality")
PASSED, FAILED = 0, 1
NEEDS_SPARK = 3
# EX_UNAVAILABLE of sysexits.h: the read model cannot be checked at all.
UNCHECKABLE = 69
# EX_TEMPFAIL of sysexits.h: no verdict; retry later.
NO_VERDICT = 75
# A killed job releases its lock within a second.
LOCK_WAIT_S = 60.0
# Begins the line of output with which a program hands a check to Spark's job; the job's further arguments follow.
HANDED_TO_SPARK = "arguments for Spark: "
# Beyond this, a reason is cut off.
MAX_REASON_CHARACTERS = 500


@dataclass(frozen=True)
class SparkReason:
    """Why Spark checks, where DuckDB might have.

    text: the reason, on one line; empty if Spark's job was started by itself. disputed: what a check with DuckDB has found, which Spark
    confirms or refutes; empty if it has found nothing.
    """

    text: str = ""
    disputed: str = ""

    @classmethod
    def of(cls, text: str, disputed: str = "") -> "SparkReason":
        """Return a reason whose texts are on one line."""
        return cls(_one_line(text), _one_line(disputed))

    def arguments(self) -> list[str]:
        """Return the arguments that `parse` reads."""
        given = {"--engine-reason": self.text, "--disputed": self.disputed}
        return [f"{option}={text}" for option, text in given.items() if text]

    def explain(self, result: CheckResult) -> CheckResult:
        """Return a result of Spark with the reason, and with the finding that the engines disagree if they do."""
        findings = result.findings
        if self.disputed and result.passed:
            findings += (f"the engines disagree: DuckDB found {self.disputed}, and Spark did not",)
        return replace(result, engine=CheckEngine.SPARK.value, engine_reason=self.text, findings=findings)


class SparkNeededError(FoldlakeError):
    """The check is handed to Spark's job."""

    def __init__(self, reason: SparkReason) -> None:
        super().__init__(reason.text)
        self.reason = reason


def parse(arguments: Sequence[str]) -> tuple[CheckRequest, SparkReason]:
    """Read the command line of a check; prints the reason and exits with status 2 if it is wrong."""
    parser = argparse.ArgumentParser(description="Checks stored records against the log.")
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
    parser.add_argument(
        "--from-log", action="store_true", help="read all events from the log, also those of an event table"
    )
    parser.add_argument("--engine-reason", default="", help="why Spark checks and not DuckDB")
    parser.add_argument("--disputed", default="", help="what a failed check with DuckDB has found")
    options = parser.parse_args(arguments)
    try:
        stores = tuple(StoreName(name.strip()) for name in options.stores.split(",") if name.strip())
    except ValueError as error:
        parser.error(f"--stores: {error}; allowed: {', '.join(StoreName)}")
    if not stores:
        parser.error("--stores: name at least one")
    request = CheckRequest(
        options.read_model, stores, Mode(options.mode), options.run_id, options.version, options.from_log
    )
    return request, SparkReason(options.engine_reason, options.disputed)


def exit_status(check: Callable[[], CheckResult | None]) -> int:
    """Run a check and return its exit status; an error is logged. If Spark must check, its further arguments are printed on one line.

    A program that has no verdict, such as a comparison, returns None and has passed.
    """
    try:
        return FAILED if (result := check()) is not None and not result.passed else PASSED
    except SparkNeededError as needed:
        sys.stdout.write(f"{HANDED_TO_SPARK}{shlex.join(needed.reason.arguments())}\n")
        sys.stdout.flush()
        return NEEDS_SPARK
    except UncheckableError as error:
        LOG.error("%s", error)  # noqa: TRY400 - its message is complete without a traceback
        return UNCHECKABLE
    except FoldlakeError as error:
        LOG.error("the check did not complete: %s", error)  # noqa: TRY400 - its message is complete without a traceback
        return NO_VERDICT
    except Exception as error:
        # An uncaught exception would exit with status 1, like a failed check.
        LOG.exception("the check did not complete: %s", error)  # noqa: TRY401 - Spark's errors have the cause in their first line
        return NO_VERDICT


def staging_kept(home: Path, request: CheckRequest) -> AbstractContextManager[None]:
    """Keep the staging table that a check reads, and the place of what it verifies, from being removed during a block of code."""
    if request.version is None or StoreName.STAGING not in request.stores:
        return nullcontext()
    return staging_lock(home, request.read_model, request.version, wait_s=LOCK_WAIT_S)


def publish(settings: Settings, request: CheckRequest, compare: Callable[[], CheckResult]) -> CheckResult:
    """Run the check, write how far it has verified, the page and the results, alert on a failure, and write the verdict last.

    Returns the result. May be killed and repeated at any point: without a verdict everything is repeated, and the results replace those of the
    run's earlier attempt.

    Args:
        settings: where everything is written.
        request: the check.
        compare: compares the records; returns the result without its report.

    Raises:
        UncheckableError: the read model cannot be checked; it is written as the verdict.
        FoldlakeError: the check cannot complete, and nothing is written: errors of `compare`.
    """
    started_s = time.monotonic()
    report.remove(settings.home, request.run_id)
    try:
        result = compare()
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
    retention = settings.retention.quality_results_h
    try:
        with shared_umask() if settings.lake.dir else nullcontext():
            results.record(settings.lake_root, settings.lake.retention_h, retention, result)
    finally:
        # Alert even when the lake's storage is unavailable.
        if not result.passed:
            report.alert(settings.quality.alert_webhook_url, result)
    report.write_summary(settings.home, result)
    LOG.info("%s. Report: %s (%s)", result.verdict, result.report, result.report_url)
    return result


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_REASON_CHARACTERS else f"{line[:MAX_REASON_CHARACTERS]}…"
