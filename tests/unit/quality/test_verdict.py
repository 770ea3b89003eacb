"""How a check's task handles its verdict: a failure is final, a missing verdict is retried, an impossible check is skipped with its reason."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowException
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from rich.console import Console

from cli.quality import _show
from include.airflow.quality_operators import CheckStores, run_check_job
from include.airflow.rebuild_operators import VerifyVersion
from include.airflow.spark_tasks import check_with_engines
from include.quality import check_engines, check_run, report
from include.quality.report import Outcome, Verdict, verdict_of
from include.rebuild.stage import Engine, Report, SparkJob
from include.settings import Settings
from tests.unit.quality.test_report import FAILED, PASSED, REQUEST

NAME = REQUEST.run_id
JOB_FAILED = AirflowException("the job ended with status 1")
Writes = Callable[[Settings], object]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("FOLDLAKE_HOME", str(tmp_path))
    # The jobs of these tests are in Spark's place.
    monkeypatch.setenv("FOLDLAKE_CHECK_ENGINE", "spark")
    return Settings.of()


def passed(settings: Settings) -> None:
    report.write_summary(settings.home, PASSED)


def failed(settings: Settings) -> None:
    report.write_summary(settings.home, FAILED)


def refused(settings: Settings) -> None:
    report.write_uncheckable(settings.home, REQUEST, "it cannot be checked", 12.0)


def job(settings: Settings, writes: Writes | None, error: Exception | None) -> Callable[..., None]:
    """Return a job that may write a verdict and may fail."""

    def run(*_: object) -> None:
        if writes is not None:
            writes(settings)
        if error is not None:
            raise error

    return run


def test_verdict_is_none_before_the_check_has_finished(settings: Settings) -> None:
    assert verdict_of(settings.home, NAME) is None
    report.write_page(settings.home, FAILED)
    assert verdict_of(settings.home, NAME) is None
    failed(settings)
    assert verdict_of(settings.home, NAME) == Verdict(Outcome.FAILED, FAILED.verdict)
    passed(settings)
    assert verdict_of(settings.home, NAME) == Verdict(Outcome.PASSED, PASSED.verdict)
    refused(settings)
    assert verdict_of(settings.home, NAME) == Verdict(Outcome.UNCHECKABLE, "it cannot be checked")


def test_a_passed_check_returns_its_report(settings: Settings) -> None:
    assert run_check_job(
        settings.home, settings.reports_base_url, NAME, job(settings, passed, None)
    ) == report.report_url(settings.reports_base_url, NAME)


@pytest.mark.parametrize(
    ("writes", "raised"),
    [
        (failed, AirflowFailException),
        (refused, AirflowSkipException),
        # No verdict, or one behind which the job was killed: it is tried again.
        (None, AirflowException),
        (passed, AirflowException),
    ],
)
def test_the_verdict_decides_about_a_failed_job(
    settings: Settings, writes: Writes | None, raised: type[Exception]
) -> None:
    with pytest.raises(AirflowException) as error:
        run_check_job(settings.home, settings.reports_base_url, NAME, job(settings, writes, JOB_FAILED))

    assert type(error.value) is raised


def test_the_verdict_of_an_earlier_try_is_ignored(settings: Settings) -> None:
    failed(settings)

    with pytest.raises(AirflowException) as error:
        run_check_job(settings.home, settings.reports_base_url, NAME, job(settings, None, JOB_FAILED))

    assert error.value is JOB_FAILED


@pytest.mark.parametrize(
    ("writes", "raised", "message"),
    [
        (failed, AirflowFailException, "quality check FAILED: balance v3"),
        (
            refused,
            AirflowFailException,
            "The candidate cannot be verified and is not promoted: it cannot be checked",
        ),
        (None, AirflowException, "the job ended with status 1"),
    ],
)
def test_a_candidate_without_a_verdict_is_abandoned(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    writes: Writes | None,
    raised: type[Exception],
    message: str,
) -> None:
    monkeypatch.setattr(SparkSubmitOperator, "execute", job(settings, writes, JOB_FAILED))
    run = SimpleNamespace(report_id=NAME)
    monkeypatch.setattr("include.airflow.rebuild_operators.stage_run", lambda *_arguments: run)
    work = SparkJob("quality_check", Engine.LAKE, lambda _run: (), report=Report.CHECK)
    task = VerifyVersion(task_id="verify", stage_job=work, read_models=())

    with pytest.raises(AirflowException, match=message) as error:
        task.execute({"dag_run": SimpleNamespace(dag_id="rebuild", run_id=NAME)})

    assert type(error.value) is raised
    assert task.check_of("any run") == NAME


@pytest.mark.parametrize(
    ("status", "writes", "raised"),
    [
        (check_run.PASSED, passed, None),
        (check_run.FAILED, failed, AirflowFailException),
        (check_run.UNCHECKABLE, refused, AirflowSkipException),
        (check_run.NO_VERDICT, None, AirflowException),
    ],
)
def test_a_verdict_without_spark_decides_about_the_task(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    status: int,
    writes: Writes | None,
    raised: type[Exception] | None,
) -> None:
    line = "2026-01-01 00:00:00,000Z WARNING foldlake.quality: slow"
    monkeypatch.setattr(check_engines, "PROGRAM", ("-c", f"import sys; print({line!r}); sys.exit({status})"))
    task = CheckStores(task_id="check_balance", read_model="balance")

    def check() -> None:
        job(settings, writes, None)()
        check_with_engines(task, settings, [], lambda: pytest.fail("Spark must not check"))

    expected = pytest.raises(AirflowException) if raised else nullcontext()
    with expected as error:
        run_check_job(settings.home, settings.reports_base_url, NAME, check)

    assert raised is None or type(error.value) is raised  # type: ignore[union-attr]  # of pytest.raises
    assert line in capsys.readouterr().out


@pytest.mark.parametrize("run_type", ["asset_triggered", "scheduled", "manual"])
def test_without_a_table_only_a_manual_check_runs(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, run_type: str
) -> None:
    monkeypatch.setattr(SparkSubmitOperator, "execute", job(settings, None, JOB_FAILED))
    context: dict[str, Any] = {
        "dag_run": SimpleNamespace(dag_id="quality", run_type=run_type, run_id=NAME),
        "params": {"read_model": "balance", "mode": "full", "stores": ["lake"]},
        "triggering_asset_events": {Asset("check-due/balance"): []} if run_type == "asset_triggered" else {},
    }

    with pytest.raises(AirflowException) as error:
        CheckStores(task_id="check_balance", read_model="balance").execute(context)

    skipped = isinstance(error.value, AirflowSkipException)
    assert skipped == (run_type != "manual"), error.value


@pytest.mark.parametrize(("writes", "code"), [(passed, 0), (failed, 1), (refused, 69), (None, 75)])
def test_the_command_line_ends_with_the_verdicts_code(
    settings: Settings, writes: Writes | None, code: int
) -> None:
    job(settings, writes, None)()

    assert _show(Console(), settings.home, NAME) == code
