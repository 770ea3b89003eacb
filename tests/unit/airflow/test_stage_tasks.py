"""A stage's task asks a person if it must, passes its job the arguments of its run, and is retried only after some errors."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.providers.common.compat.sdk import AirflowException
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from include.airflow.rebuild_operators import (
    CompareVersions,
    OptionalApproval,
    StageJob,
    fail_without_retry,
    skip_refused_request,
)
from include.airflow.spark_tasks import SparkJobOperator
from include.errors import KafkaUnavailableError
from include.quality.check_run import NEEDS_SPARK, NO_VERDICT, PASSED
from include.rebuild.errors import (
    NoSlotsError,
    NothingToDoError,
    RequestError,
    StageTimeoutError,
    StaleRequestError,
)
from include.rebuild.plan import REBUILD, ROLLBACK, Plan, rebuild_plan
from include.rebuild.stage import Action, Approval, Engine, Question, Report, SparkJob
from include.versions.transitions import RebuildRunningError, RunAbandonedError, UnknownVersionError
from include.versions.version_lock import VersionLockedError


def context(form: dict[str, object]) -> dict[str, object]:
    """Return what Airflow passes to a task of a run with this form."""
    run = SimpleNamespace(run_id="run-a", conf=form, run_after=datetime.now(UTC), dag_id="rebuild")
    return {"params": form, "dag_run": run, "ti": None}


@pytest.mark.parametrize(
    ("read_models", "expected"), [((), "balance"), (("accounts",), "accounts")], ids=["of the form", "own"]
)
def test_a_job_works_on_the_read_model_of_its_stage_or_of_the_form(
    monkeypatch: pytest.MonkeyPatch, read_models: tuple[str, ...], expected: str
) -> None:
    submitted: list[list[str]] = []
    operator = StageJob(
        task_id="promote_lake",
        application="promote_lake.py",
        stage_job=SparkJob("promote_lake", Engine.LAKE, lambda run: ("--read-model", run.read_model)),
        read_models=read_models,
    )
    monkeypatch.setattr(
        SparkJobOperator, "execute", lambda self, _context: submitted.append(self.application_args)
    )

    operator.execute(context({"read_model": "balance"}))

    assert submitted == [["--read-model", expected]]


@pytest.mark.parametrize(("status", "by_spark"), [(PASSED, False), (NEEDS_SPARK, True), (NO_VERDICT, False)])
def test_spark_compares_only_if_the_program_hands_the_comparison_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    by_spark: bool,
) -> None:
    monkeypatch.setenv("FOLDLAKE_HOME", str(tmp_path))
    code = f"import sys; assert sys.argv[1:] == ['--version', '7']; sys.exit({status})"
    monkeypatch.setattr("include.airflow.rebuild_operators.COMPARISON", ("-c", code))
    submitted: list[list[str]] = []
    monkeypatch.setattr(
        SparkJobOperator, "execute", lambda self, _context: submitted.append(self.application_args)
    )
    work = SparkJob(
        "compare_versions", Engine.LAKE, lambda _run: ("--version", "7"), report=Report.COMPARISON
    )
    run = SimpleNamespace(report_id="rebuild-balance-v7")
    monkeypatch.setattr("include.airflow.rebuild_operators.stage_run", lambda *_arguments: run)
    task = CompareVersions(task_id="compare", stage_job=work, read_models=())

    no_verdict = pytest.raises(AirflowException, match=f"The comparison ended with status {status}")
    with no_verdict if status == NO_VERDICT else nullcontext():
        task.execute({})

    assert submitted == ([["--version", "7"]] if by_spark else [])
    assert task.report_id == "rebuild-balance-v7"


@pytest.mark.parametrize("approve", [True, False])
@pytest.mark.parametrize("exceeded", [(), ("v7 is too different.",)])
def test_a_person_is_asked_if_the_form_says_so_or_a_threshold_is_exceeded(
    monkeypatch: pytest.MonkeyPatch, approve: bool, exceeded: tuple[str, ...]
) -> None:
    asked: list[tuple[str, str]] = []
    question = Question("Promote v7 of balance?", "the results")
    work = Approval(lambda _run: question, lambda _run: exceeded, timeout=timedelta(days=7))
    operator = OptionalApproval(task_id="approve", approval=work, read_models=())
    monkeypatch.setattr(
        ApprovalOperator, "execute", lambda self, _context: asked.append((self.subject, self.body))
    )

    operator.execute(context({"read_model": "balance", "approve": approve}))

    assert len(asked) == (1 if approve or exceeded else 0)
    for subject, body in asked:
        assert subject == "Promote v7 of balance?"
        assert body.endswith("the results")
        assert ("v7 is too different." in body) == bool(exceeded)


@pytest.mark.parametrize(
    ("error", "becomes"),
    [
        (RequestError("reason is empty"), AirflowFailException),
        (NothingToDoError("nothing"), AirflowSkipException),
        (KafkaUnavailableError("no broker"), KafkaUnavailableError),
        (StageTimeoutError("not in time"), StageTimeoutError),
        (VersionLockedError("held"), VersionLockedError),
        (ZeroDivisionError("a bug"), ZeroDivisionError),
    ],
)
def test_only_temporary_errors_are_retried(error: Exception, becomes: type[Exception]) -> None:
    with pytest.raises(becomes, match=str(error)), fail_without_retry():
        raise error


REFUSED_REQUEST = "The rebuild run-a is building v2 of balance"


@pytest.mark.parametrize(
    "error",
    [RequestError, NoSlotsError, StaleRequestError, RebuildRunningError, UnknownVersionError],
)
def test_a_refused_request_is_skipped_and_noted(error: type[Exception]) -> None:
    notes: list[str] = []

    with (
        pytest.raises(AirflowSkipException, match=f"Refused: {REFUSED_REQUEST}"),
        skip_refused_request(notes.append),
    ):
        raise error(REFUSED_REQUEST)

    assert notes == [f"Refused: {REFUSED_REQUEST}"]


@pytest.mark.parametrize("error", [RunAbandonedError, KafkaUnavailableError, ZeroDivisionError])
def test_what_is_not_the_request_s_fault_fails_as_before(error: type[Exception]) -> None:
    with pytest.raises(error), skip_refused_request(print):
        raise error("no")


@pytest.mark.parametrize("plan", [REBUILD, ROLLBACK, rebuild_plan(("one",), "orders")], ids=lambda p: p.name)
def test_only_the_first_stage_of_a_plan_can_refuse_its_request(plan: Plan) -> None:
    checks = [isinstance(s.work, Action) and s.work.checks_request for s in plan.all_stages]

    assert checks == [True] + [False] * (len(checks) - 1)
