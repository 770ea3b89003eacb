"""Which verdicts of DuckDB count, and when Spark must check; and that nothing is written before it does."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from include.errors import FoldlakeError, KafkaUnavailableError
from include.quality import check_run, report
from include.quality.check import (
    CheckRequest,
    CheckResult,
    ExpectationResult,
    StoreName,
    TableMissingError,
    UncheckableError,
    job_arguments,
)
from include.quality.check_run import (
    HANDED_TO_SPARK,
    NEEDS_SPARK,
    NO_VERDICT,
    UNCHECKABLE,
    SparkNeededError,
    SparkReason,
    exit_status,
)
from include.quality.history import last_runs
from include.quality.report import Outcome, verdict_of
from include.replay.check.target import OtherEngineError
from include.replay.quality_check import CannotCheckError, check
from include.settings import CHECKOUT, CheckEngine, Settings, settings_environment
from tests.unit.quality.test_report import FAILED, PASSED, REQUEST

AUTO, DUCKDB, SPARK = CheckEngine.AUTO, CheckEngine.DUCKDB, CheckEngine.SPARK
FOUND = "2 failing keys, the first '<script>alert(7)</script>' in lake (amount equals the replayed value)"
Compare = Callable[[Settings, CheckRequest], CheckResult]


def settings_for(home: Path, engine: CheckEngine) -> Settings:
    return Settings.of(home=home, check_engine=engine)


def gives(result: CheckResult) -> Compare:
    return lambda *_: result


def fails_with(error: Exception) -> Compare:
    def compare(*_: object) -> CheckResult:
        raise error

    return compare


def needed(settings: Settings, compare: Compare) -> SparkReason:
    """Check, which must be handed to Spark with nothing written, and return the reason."""
    with pytest.raises(SparkNeededError) as error:
        check(settings, REQUEST, compare)
    assert verdict_of(settings.home, REQUEST.run_id) is None
    assert last_runs(settings.lake_root) == []
    return error.value.reason


@pytest.mark.parametrize("engine", [AUTO, DUCKDB])
def test_a_passed_check_counts(tmp_path: Path, engine: CheckEngine) -> None:
    settings = settings_for(tmp_path, engine)

    assert exit_status(lambda: check(settings, REQUEST, gives(PASSED))) == check_run.PASSED

    summary = CheckResult.read(report.summary_path(tmp_path, REQUEST.run_id).read_text(encoding="utf-8"))
    assert (summary["passed"], summary["engine"], summary["engine_reason"]) == (True, "duckdb", "")
    (run,) = last_runs(settings.lake_root)
    assert run.passed
    page = report.report_path(tmp_path, REQUEST.run_id).read_text(encoding="utf-8")
    assert "<dt>Engine</dt><dd>duckdb</dd>" in page


def test_a_failed_check_is_repeated_with_spark(tmp_path: Path) -> None:
    reason = needed(settings_for(tmp_path, AUTO), gives(FAILED))

    assert reason == SparkReason("DuckDB found 2 failing keys: Spark checks again", FOUND)


def test_a_failure_of_a_whole_store_is_repeated_with_spark(tmp_path: Path) -> None:
    late = ExpectationResult(StoreName.LAKE, "fresh", 1, 1)
    result = replace(PASSED, expectations=(late,))

    reason = needed(settings_for(tmp_path, AUTO), gives(result))

    assert reason == SparkReason("DuckDB found lake: fresh (1): Spark checks again", "lake: fresh (1)")


def test_a_failed_check_counts_if_only_duckdb_may_check(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, DUCKDB)

    assert exit_status(lambda: check(settings, REQUEST, gives(FAILED))) == check_run.FAILED

    verdict = verdict_of(tmp_path, REQUEST.run_id)
    assert verdict is not None
    assert verdict.outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OtherEngineError("items leave the read model"), "items leave the read model"),
        (FoldlakeError("The key is a function."), "The key is a function"),
        (RuntimeError("out of\nmemory"), "the check with DuckDB ended with an error: out of memory"),
    ],
)
def test_what_duckdb_cannot_check_is_checked_by_spark(tmp_path: Path, error: Exception, text: str) -> None:
    assert needed(settings_for(tmp_path, AUTO), fails_with(error)) == SparkReason(text)

    with pytest.raises(CannotCheckError, match=r"FOLDLAKE_CHECK_ENGINE=auto") as refused:
        check(settings_for(tmp_path, DUCKDB), REQUEST, fails_with(error))
    assert text in " ".join(str(refused.value).split())


@pytest.mark.parametrize(
    "error",
    [
        KafkaUnavailableError("Kafka did not answer"),
        TableMissingError.of("/lake/balance", StoreName.LAKE, "balance"),
    ],
)
def test_without_a_server_or_a_table_there_is_no_verdict(
    tmp_path: Path, error: FoldlakeError, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_for(tmp_path, AUTO)

    assert exit_status(lambda: check(settings, REQUEST, fails_with(error))) == NO_VERDICT

    logged = caplog.records[-1]
    assert (logged.getMessage(), logged.exc_info) == (f"the check did not complete: {error}", None)


@pytest.mark.parametrize("engine", [AUTO, DUCKDB])
def test_a_read_model_that_cannot_be_checked_is_not_given_to_spark(
    tmp_path: Path, engine: CheckEngine
) -> None:
    settings = settings_for(tmp_path, engine)
    refuses = fails_with(UncheckableError("keys are in several partitions"))

    assert exit_status(lambda: check(settings, REQUEST, refuses)) == UNCHECKABLE

    verdict = verdict_of(tmp_path, REQUEST.run_id)
    assert verdict is not None
    assert verdict.outcome is Outcome.UNCHECKABLE


def test_results_that_cannot_be_written_are_no_reason_for_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("include.quality.results.record", refuse)

    assert exit_status(lambda: check(settings_for(tmp_path, AUTO), REQUEST, gives(PASSED))) == NO_VERDICT


@pytest.mark.parametrize("result", [PASSED, FAILED], ids=["passed", "failed"])
def test_a_disagreement_of_the_engines_is_a_finding(result: CheckResult) -> None:
    explained = SparkReason("DuckDB found 1 failing key", FOUND).explain(result)

    line = f"the engines disagree: DuckDB found {FOUND}, and Spark did not"
    assert (line in explained.findings) == (line in explained.verdict) == result.passed
    assert explained.passed == result.passed
    assert (explained.engine, explained.engine_reason) == ("spark", "DuckDB found 1 failing key")
    assert "<dt>Engine</dt><dd>spark, because DuckDB found 1 failing key</dd>" in report.html(explained)


def test_the_program_hands_every_check_to_spark_if_the_setting_says_so(tmp_path: Path) -> None:
    environment = os.environ | settings_environment(settings_for(tmp_path, SPARK))

    done = subprocess.run(
        [sys.executable, "-m", "include.replay.quality_check", *job_arguments(REQUEST)],
        cwd=CHECKOUT,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )

    assert done.returncode == NEEDS_SPARK
    assert done.stdout == f"{HANDED_TO_SPARK}'--engine-reason=FOLDLAKE_CHECK_ENGINE is spark'\n"
