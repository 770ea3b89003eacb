"""A followed run is a sequence of events, which the command line prints: numbered stages, and failures with their log."""

from collections.abc import Callable

import pytest
from rich.console import Console

from cli.display.run_display import RunDisplay
from include.airflow import dag_run
from include.airflow.client import AirflowApi, AirflowUnavailableError, TaskState
from include.airflow.dag_run import (
    DagRun,
    RunEnded,
    RunRefused,
    RunTimeoutError,
    TaskChanged,
    TaskFailure,
    TaskProgress,
)
from include.rebuild.plan import PlannedStage
from include.rebuild.stages.build import VERIFY
from include.rebuild.stages.promotion import PROMOTE_LAKE
from include.rebuild.stages.serve import HYDRATE

PLAN = (PlannedStage(VERIFY, 2), PlannedStage(HYDRATE, 2), PlannedStage(PROMOTE_LAKE, 2))
PROGRESS = "[2026-05-01] progress: catch up of balance v2: 400 of 1,000 events (40 %)"


class ScriptedAirflow(AirflowApi):
    """Each poll of the run returns the next of these states; the last one repeats. None: Airflow does not respond."""

    def __init__(
        self, *looks: dict[str, str | None] | None, ended: str = "running", note: str = "balance: a test"
    ) -> None:
        super().__init__("http://127.0.0.1:1")
        self._note = note
        self._looks = list(looks)
        self._ended = ended

    def tasks(self, dag_id: str, run_id: str) -> list[TaskState]:
        """Return the next states."""
        assert (dag_id, run_id) == ("rebuild", "run-a")
        look = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        if look is None:
            raise AirflowUnavailableError.because("GET", "away")
        return [TaskState(task_id, state, 1) for task_id, state in look.items()]

    def run_state(self, dag_id: str, run_id: str) -> str | None:
        """Return the run's state: ended at the last poll."""
        assert (dag_id, run_id) == ("rebuild", "run-a")
        return self._ended if len(self._looks) == 1 else "running"

    def note(self, dag_id: str, run_id: str) -> str:
        """Return the run's note."""
        assert (dag_id, run_id) == ("rebuild", "run-a")
        return self._note

    def task_log(self, dag_id: str, run_id: str, task_id: str, try_number: int) -> list[str]:
        """Return a log with one line of progress."""
        assert (dag_id, run_id, try_number) == ("rebuild", "run-a", 1)
        return ["::group::", PROGRESS, f"the end of {task_id}"]


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dag_run, "POLL_INTERVAL_S", 0.0)


def followed(api: AirflowApi, until: str) -> list[dag_run.RunEvent]:
    return list(DagRun(api, "rebuild", "run-a").follow([until]))


def test_events_of_a_run_that_reaches_its_task() -> None:
    api = ScriptedAirflow(
        {"catch_up": None, "verify": None},
        {"catch_up": "running", "verify": None},
        None,
        {"catch_up": "running", "verify": None},
        {"catch_up": "success", "verify": None},
    )
    assert [e for e in followed(api, "catch_up") if e != TaskChanged(TaskState("verify", None, 1))] == [
        TaskChanged(TaskState("catch_up", None, 1)),
        TaskChanged(TaskState("catch_up", "running", 1)),
        TaskProgress("catch_up", "catch up of balance v2: 400 of 1,000 events (40 %)"),
        TaskChanged(TaskState("catch_up", "success", 1)),
        RunEnded(succeeded=True),
    ]


def test_run_that_fails_ends_with_the_log_of_the_failed_task() -> None:
    api = ScriptedAirflow({"catch_up": "running"}, {"catch_up": "failed"}, ended="failed")
    assert followed(api, "verify")[-2:] == [
        TaskFailure("catch_up", (PROGRESS, "the end of catch_up")),
        RunEnded(succeeded=False),
    ]


def test_run_that_ends_without_its_task_has_not_succeeded() -> None:
    assert followed(ScriptedAirflow({"verify": "skipped"}, ended="success"), "verify")[-1] == RunEnded(
        succeeded=False
    )


def test_run_whose_request_is_refused_ends_with_the_reason() -> None:
    api = ScriptedAirflow(
        {"register_candidate": "skipped"}, ended="success", note="Refused: v2 is being built"
    )

    assert followed(api, "promote")[-2:] == [RunRefused("v2 is being built"), RunEnded(succeeded=False)]


def test_tasks_of_an_aborted_rebuild_are_not_shown_as_failures() -> None:
    api = ScriptedAirflow({"build_staging": "failed"}, ended="failed", note="Aborted: balance v2: a new rule")
    run = DagRun(api, "rebuild", "run-a")

    events = list(run.follow(["promote"]))

    assert [type(event) for event in events] == [TaskChanged, RunEnded]
    assert run.is_aborted


def test_airflow_that_stays_unavailable_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dag_run, "OUTAGE_TIMEOUT_S", 0.05)
    with pytest.raises(AirflowUnavailableError):
        followed(ScriptedAirflow(None), "verify")


def test_run_that_takes_too_long_is_an_error() -> None:
    run = DagRun(ScriptedAirflow({"verify": "running"}), "rebuild", "run-a")
    with pytest.raises(RunTimeoutError, match="run-a of the DAG rebuild has not ended within 0 s"):
        list(run.follow(["verify"], timeout_s=0.05))


def shown(events: Callable[[RunDisplay], None]) -> list[str]:
    console = Console(width=200)
    with console.capture() as capture:
        events(RunDisplay(console, PLAN))
    return capture.get().splitlines()


def test_stages_are_numbered_and_described_once() -> None:
    def events(display: RunDisplay) -> None:
        for state in ("running", "success"):
            display.show(TaskChanged(TaskState("verify", state, 1)))
        display.show(TaskChanged(TaskState("abandon", "running", 1)))
        display.show(TaskChanged(TaskState("promote_lake", "deferred", 1)))

    assert shown(events) == [
        f"1/3 verify              running  v2: {VERIFY.description}",
        "1/3 verify              done",
        f"3/3 promote_lake        waiting  v2: {PROMOTE_LAKE.description}",
    ]


def test_task_that_is_not_a_stage_of_the_plan_has_no_number() -> None:
    lines = shown(lambda display: display.show(TaskChanged(TaskState("abandon", "success", 1))))
    assert lines == ["    abandon             done"]


def test_failure_is_shown_with_its_log_and_the_remedy() -> None:
    lines = shown(lambda display: display.show(TaskFailure("hydrate", ("line 1", "line 2"))))
    assert lines == [
        "Last lines of the log of hydrate:",
        "  line 1",
        "  line 2",
        f"When hydrate fails: {HYDRATE.on_failure}.",
    ]
