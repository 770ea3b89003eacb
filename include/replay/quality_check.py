"""Program: checks stored records against the log with DuckDB, without Spark, as far as FOLDLAKE_CHECK_ENGINE allows.

Its arguments and its exit status are those of every check (include/quality/check_run.py). With the status 3, Spark's job must check, with the
further arguments on the line that begins with HANDED_TO_SPARK.
"""

import atexit
import gc
import logging
import sys
from collections.abc import Callable
from dataclasses import replace
from threading import Thread
from typing import TypeVar

from include.declarations.load import load_catalog
from include.errors import (
    FoldlakeError,
    KafkaUnavailableError,
    RegistryUnavailableError,
    UnknownReadModelError,
)
from include.observability.logs import configure_logs
from include.process import die_with_parent, launcher_pid, lower_priority
from include.quality.check import CheckRequest, CheckResult, Mode, TableMissingError, UncheckableError
from include.quality.check_run import (
    SparkNeededError,
    SparkReason,
    exit_status,
    parse,
    publish,
    staging_kept,
)
from include.replay.rules import great_expectations
from include.settings import CheckEngine, Settings
from include.versions.version_lock import VersionLockedError
from include.words import plural

LOG = logging.getLogger("foldlake.quality")
# Spark would meet these, too.
OF_ANY_ENGINE = (
    TableMissingError,
    UncheckableError,
    KafkaUnavailableError,
    RegistryUnavailableError,
    UnknownReadModelError,
    VersionLockedError,
)
# Of Great Expectations: a check with DuckDB hands it pandas' frames.
UNUSED_ENGINES = ("pyspark", "sqlalchemy")
T = TypeVar("T")
Compare = Callable[[Settings, CheckRequest], CheckResult]


class CannotCheckError(FoldlakeError):
    """DuckDB cannot check, and no other engine is allowed."""


def main() -> None:
    """Run the program."""
    request, _ = parse(sys.argv[1:])
    settings = begin_program()
    sys.exit(exit_status(lambda: check(settings, request, _with_duckdb)))


def begin_program() -> Settings:
    """Prepare the process of a check or comparison: its end with its launcher, its log, its priority, its garbage."""
    die_with_parent(launcher_pid())
    settings = Settings()
    configure_logs(settings.log.format, "quality check")
    lower_priority(settings.lake.niceness)
    # The program is short, and what it has imported stays until its end: to look for garbage there takes longer than it saves.
    gc.disable()
    atexit.register(gc.freeze)
    return settings


def check(settings: Settings, request: CheckRequest, compare: Compare) -> CheckResult:
    """Run the check with DuckDB and publish its result; see `publish`.

    Raises SparkNeededError, with nothing written, if FOLDLAKE_CHECK_ENGINE is `spark`; or if it is `auto`, and DuckDB cannot check or the check
    fails. Raises CannotCheckError if it is `duckdb` and DuckDB cannot check.
    """
    if settings.quality.engine is CheckEngine.SPARK:
        raise SparkNeededError(SparkReason.of("FOLDLAKE_CHECK_ENGINE is spark"))
    with staging_kept(settings.home, request):
        return publish(settings, request, lambda: _accepted(settings, request, compare))


def _with_duckdb(settings: Settings, request: CheckRequest) -> CheckResult:
    # Only if DuckDB checks: they take time and memory.
    from include.replay.check.run import run_check  # noqa: PLC0415

    if request.mode is not Mode.INCREMENTAL:
        # Before: a module of declarations may import Spark.
        load_catalog(settings.declaration_folders)
        # It takes seconds, in which the database and the network work.
        Thread(target=_import_great_expectations, daemon=True).start()
    if request.version is None:
        return run_check(settings, request)
    from include.replay.check.version_comparison import comparison_after  # noqa: PLC0415

    return run_check(settings, request, comparison_after(settings, request))


def _import_great_expectations() -> None:
    # It imports these if they are there.
    sys.modules.update(dict.fromkeys(UNUSED_ENGINES))  # type: ignore[arg-type]  # None: there is no such module
    great_expectations()


def _accepted(settings: Settings, request: CheckRequest, compare: Compare) -> CheckResult:
    """Return the result of DuckDB if its verdict counts; raises SparkNeededError or CannotCheckError otherwise."""
    result = done_with_duckdb(settings, request.read_model, lambda: compare(settings, request))
    result = replace(result, engine=CheckEngine.DUCKDB.value)
    if settings.quality.engine is CheckEngine.AUTO and not result.passed:
        LOG.warning("with DuckDB: %s", result.verdict)
        raise _needed(disputed(result))
    return result


def done_with_duckdb(settings: Settings, read_model: str, work: Callable[[], T]) -> T:
    """Return the result of some work; raises SparkNeededError or CannotCheckError where DuckDB cannot do it."""
    try:
        return work()
    except OF_ANY_ENGINE:
        raise
    except Exception as error:
        if isinstance(error, FoldlakeError):
            reason = str(error).rstrip(".")
        else:
            LOG.warning("the check with DuckDB ended with an error", exc_info=True)
            reason = f"the check with DuckDB ended with an error: {error}"
        if settings.quality.engine is CheckEngine.AUTO:
            raise _needed(SparkReason.of(reason)) from error
        raise CannotCheckError(
            f"DuckDB cannot check {read_model}: {reason}. With FOLDLAKE_CHECK_ENGINE=auto, Spark checks where DuckDB cannot."
        ) from error


def disputed(result: CheckResult) -> SparkReason:
    """Return the reason why Spark checks again after a check that has failed."""
    if result.failing_keys:
        number, first = result.failing_keys_total, result.failing_keys[0]
        keys = plural(number, "failing key")
        found = f"{keys}, the first {first.key!r} in {first.place} ({'; '.join(first.expectations)})"
    else:
        keys = found = "; ".join(
            f"{one.store}: {one.expectation} ({one.failed:,})"
            for one in result.expectations
            if not one.passed
        )
    return SparkReason.of(f"DuckDB found {keys}: Spark checks again", found)


def _needed(reason: SparkReason) -> SparkNeededError:
    LOG.info("Spark checks, because %s", reason.text)
    return SparkNeededError(reason)


if __name__ == "__main__":
    main()
