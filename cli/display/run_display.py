"""Starts a DAG run and displays it in the terminal: each task's start and end, and the running task's progress."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from include.airflow.client import TaskState
from include.airflow.dag_run import (
    DagRun,
    RunEnded,
    RunEvent,
    RunRefused,
    TaskChanged,
    TaskFailure,
    TaskProgress,
)
from include.rebuild.plan import PlannedStage
from include.settings import Settings

STATES = {
    "success": "[green]done[/green]",
    "failed": "[red]failed[/red]",
    "up_for_retry": "[yellow]failed, will be retried[/yellow]",
    "running": "[cyan]running[/cyan]",
    "awaiting_input": "[yellow]waiting for approval in Airflow, under Required Actions[/yellow]",
    "deferred": "[dim]waiting[/dim]",
}
# It starts in every run, and is skipped unless a task has failed or was skipped.
HIDDEN_STATE = ("abandon", "running")


@dataclass(frozen=True)
class RunToFollow:
    """A run that a command starts and displays.

    title: a description, such as "rebuild of balance". until: the tasks that the command waits for.
    plan: the stages that number and describe the tasks; empty for a DAG without a plan.
    """

    title: str
    dag_id: str
    conf: dict[str, Any]
    until: Collection[str]
    note: str | None = None
    plan: Sequence[PlannedStage] = ()


def trigger_and_follow(
    console: Console,
    settings: Settings,
    wanted: RunToFollow,
    *,
    follow: bool = True,
    on_event: Callable[[DagRun, RunEvent], None] | None = None,
) -> tuple[DagRun, bool]:
    """Start a run and display it; return it, and whether the tasks that the command waits for have succeeded.

    on_event: called with each event after it was displayed.
    With follow=False: return immediately, with True. Ctrl-C exits with status 130; the run continues.
    """
    run = DagRun.trigger(settings, wanted.dag_id, wanted.conf, note=wanted.note)
    console.print(f"{wanted.title} started: {run.url}", highlight=False, soft_wrap=True)
    if not follow:
        return run, True
    display = RunDisplay(console, wanted.plan)
    succeeded = False
    try:
        for event in run.follow(wanted.until):
            display.show(event)
            if on_event is not None:
                on_event(run, event)
            succeeded = event == RunEnded(succeeded=True)
    except KeyboardInterrupt:
        console.print(f"\nThe run continues: {run.url}", highlight=False, soft_wrap=True)
        raise SystemExit(130) from None
    return run, succeeded


class RunDisplay:
    """Prints the events of one run."""

    def __init__(self, console: Console, plan: Sequence[PlannedStage] = ()) -> None:
        self._console = console
        self._plan = {planned.stage.name: (number, planned) for number, planned in enumerate(plan, start=1)}
        self._described: set[str] = set()

    def show(self, event: RunEvent) -> None:
        """Print one event."""
        match event:
            case TaskChanged(task):
                self._show_state(task)
            case TaskProgress(_, text):
                self._console.print(f"  {text}", highlight=False, markup=False, soft_wrap=True)
            case TaskFailure(task_id, lines):
                self._show_failure(task_id, lines)
            case RunRefused(reason):
                self._console.print(f"Refused: {reason}", highlight=False, markup=False, soft_wrap=True)
            case RunEnded():
                pass

    def _show_state(self, task: TaskState) -> None:
        state = STATES.get(task.state or "")
        if state is None or (task.task_id, task.state) == HIDDEN_STATE:
            return
        line = f"{self._number(task.task_id)}{task.task_id:<19} {state}"
        if task.task_id in self._plan and task.task_id not in self._described:
            self._described.add(task.task_id)
            _, planned = self._plan[task.task_id]
            version = "" if planned.version is None else f"v{planned.version}: "
            line += f"[dim]  {version}{planned.stage.description}[/dim]"
        self._console.print(line, highlight=False, soft_wrap=True)

    def _number(self, task_id: str) -> str:
        """Return a stage's number in the plan, such as " 2/10 "; blank for a task that is not in the plan."""
        if not self._plan:
            return ""
        width = len(str(len(self._plan)))
        if task_id not in self._plan:
            return " " * (2 * width + 2)
        return f"{self._plan[task_id][0]:>{width}}/{len(self._plan)} "

    def _show_failure(self, task_id: str, lines: Sequence[str]) -> None:
        self._console.print(f"Last lines of the log of {task_id}:")
        for line in lines:
            self._console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)
        if task_id in self._plan:
            hint = self._plan[task_id][1].stage.on_failure
            self._console.print(
                f"When {task_id} fails: {hint}.", highlight=False, markup=False, soft_wrap=True
            )
