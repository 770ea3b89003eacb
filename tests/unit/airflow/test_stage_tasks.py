"""Airflow renders a stage's templates to the same text as `str.format`, and a stage's errors decide whether its task is retried."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from jinja2 import Template

from include.airflow.rebuild_operators import OptionalApproval
from include.airflow.stage_execution import fail_without_retry, skip_refused_request
from include.airflow.stage_tasks import as_jinja
from include.errors import KafkaUnavailableError
from include.rebuild.comparison import report
from include.rebuild.errors import (
    NoSlotsError,
    NothingToDoError,
    RequestError,
    StageTimeoutError,
    StaleRequestError,
)
from include.rebuild.plan import REBUILD, ROLLBACK, Plan
from include.rebuild.stage import Action, Approval, SparkJob, StageRun
from include.rebuild.topic_versions.plan import topic_plan
from include.settings import Settings
from include.versions.transitions import RebuildRunningError, RunAbandonedError, UnknownVersionError
from include.versions.version_lock import VersionLockedError
from tests.support.lake.comparison_example import EXAMPLE

FORM = {"read_model": "balance", "reason": "1 % bonus {not a field}", "approve": True}
RESULTS: dict[str, Any] = {
    "register_candidate": {"version": 7, "fold_revision": 2, "grace_h": 1.5},
    "hydrate": "| store | failed |",
    "promote": 6,
}


class TaskInstance:
    """The part of Airflow's task instance that a template uses."""

    def xcom_pull(self, task_ids: str) -> Any:  # noqa: ANN401 - any JSON
        """Return the result of a task."""
        return RESULTS[task_ids]


def texts() -> list[str]:
    found = []
    for stage in REBUILD.all_stages:
        if isinstance(stage.work, SparkJob):
            found += [*stage.work.arguments, stage.work.check_id, stage.work.comparison_id]
        elif isinstance(stage.work, Approval):
            found += [stage.work.subject, stage.work.body]
    return found


@pytest.mark.parametrize("text", texts())
def test_a_text_is_the_same_with_and_without_airflow(text: str) -> None:
    now = datetime.now(UTC)
    run = StageRun(Settings.of(), "run-a", FORM, FORM, RESULTS, now, set_note=print)
    assert Template(as_jinja(text)).render(params=FORM, ti=TaskInstance()) == run.text(text)


def test_the_approval_request_names_version_read_model_and_reason() -> None:
    run = StageRun(Settings.of(), "run-a", FORM, FORM, RESULTS, datetime.now(UTC), set_note=print)
    approval = next(stage.work for stage in REBUILD.stages if isinstance(stage.work, Approval))
    assert run.text(approval.subject) == "Promote v7 of balance? 1 % bonus {not a field}"


def approval() -> Approval:
    return next(stage.work for stage in REBUILD.stages if isinstance(stage.work, Approval))


def run_with(tmp_path: Path, **form: object) -> StageRun:
    settings, sent = Settings.of(home=tmp_path), {**FORM, **form}
    return StageRun(settings, "run-a", sent, sent, RESULTS, datetime.now(UTC), set_note=print)


def test_a_form_without_thresholds_exceeds_none(tmp_path: Path) -> None:
    assert approval().exceeded(run_with(tmp_path)) == ()


def test_thresholds_without_a_comparison_require_a_person(tmp_path: Path) -> None:
    (sentence,) = approval().exceeded(run_with(tmp_path, no_negative=True))
    assert "no comparison rebuild-balance-v7" in sentence


def test_thresholds_are_evaluated_with_the_comparison_of_the_run_s_version(tmp_path: Path) -> None:
    report.write(tmp_path, replace(EXAMPLE, run_id="rebuild-balance-v7"))
    assert approval().exceeded(run_with(tmp_path, max_changed_percent=10)) == ()
    (sentence,) = approval().exceeded(run_with(tmp_path, max_changed_percent=9.5))
    assert "9.99 %" in sentence


@pytest.mark.parametrize("approve", [True, False])
@pytest.mark.parametrize("exceeded", [(), ("v7 is too different.",)])
def test_a_person_is_asked_if_the_form_says_so_or_a_threshold_is_exceeded(
    monkeypatch: pytest.MonkeyPatch, approve: bool, exceeded: tuple[str, ...]
) -> None:
    asked: list[str] = []
    operator = OptionalApproval(
        task_id="approve", subject="Promote?", body="the results", exceeded=lambda _run: exceeded
    )
    monkeypatch.setattr("include.airflow.rebuild_operators.stage_run", lambda _context: None)
    monkeypatch.setattr(ApprovalOperator, "execute", lambda self, _context: asked.append(self.body))

    operator.execute({"params": {"approve": approve}})

    assert len(asked) == (1 if approve or exceeded else 0)
    for body in asked:
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


@pytest.mark.parametrize("plan", [REBUILD, ROLLBACK, topic_plan("orders", ("one",))], ids=lambda p: p.name)
def test_only_the_first_stage_of_a_plan_can_refuse_its_request(plan: Plan) -> None:
    checks = [isinstance(s.work, Action) and s.work.checks_request for s in plan.all_stages]

    assert checks == [True] + [False] * (len(checks) - 1)
