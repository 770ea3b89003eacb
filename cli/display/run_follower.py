"""Follows an Airflow run in the terminal: each task as it begins and ends, and the progress of the one that runs."""

import time
from dataclasses import dataclass, field

from rich.console import Console

from include.airflow.client import AirflowApi, AirflowUnavailableError, TaskState
from include.work_progress import PATTERN

POLL_INTERVAL_S = 1.0
# Airflow may be restarted while a run is followed.
PATIENCE_S = 180.0
ENDED = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})
WORDS = {
    "success": "[green]done[/green]",
    "failed": "[red]failed[/red]",
    "up_for_retry": "[yellow]failed, will be tried again[/yellow]",
    "running": "[cyan]running[/cyan]",
    "awaiting_input": "[yellow]waits for your yes in Airflow, under Required Actions[/yellow]",
    "deferred": "[dim]waits[/dim]",
    "skipped": "[dim]skipped[/dim]",
}
WORTH_A_LINE = frozenset(WORDS) - {"skipped"}


@dataclass
class Following:
    """One run that is followed until a task named `until` has ended well, or the run has ended otherwise."""

    api: AirflowApi
    dag_id: str
    run_id: str
    console: Console
    until: str
    _seen: dict[str, tuple[str | None, int]] = field(default_factory=dict)
    _said: str = ""

    def follow(self) -> bool:
        """Return whether the task `until` succeeded."""
        silent_since_s = time.monotonic()
        while True:
            try:
                tasks = self.api.tasks(self.dag_id, self.run_id)
                for task in sorted(tasks, key=lambda t: t.state not in ENDED):
                    self._show(task)
                states = {task.task_id: task.state for task in tasks}
                if states.get(self.until) == "success":
                    return True
                if self.api.run_state(self.dag_id, self.run_id) in (None, "success", "failed"):
                    self._why()
                    return False
                silent_since_s = time.monotonic()
            except AirflowUnavailableError:
                if time.monotonic() - silent_since_s > PATIENCE_S:
                    raise
            time.sleep(POLL_INTERVAL_S)

    def has_done(self, task_id: str) -> bool:
        """Tell whether a task had ended well when the run was last looked at."""
        return self._seen.get(task_id, (None, 0))[0] == "success"

    def _show(self, task: TaskState) -> None:
        now = (task.state, task.try_number)
        if self._seen.get(task.task_id) != now:
            self._seen[task.task_id] = now
            # Whether there is anything to abandon is seen by the task itself: in most runs there is not.
            if task.state in WORTH_A_LINE and (task.task_id, task.state) != ("abandon", "running"):
                self.console.print(f"{task.task_id:<20}{WORDS[task.state or '']}", highlight=False)
        if task.state == "running":
            self._progress(task)

    def _progress(self, task: TaskState) -> None:
        lines = self.api.task_log(self.dag_id, self.run_id, task.task_id, task.try_number)
        found = next((match[0] for line in reversed(lines) if (match := PATTERN.search(line))), "")
        said = found.removeprefix("progress: ")
        if said and said != self._said:
            self._said = said
            self.console.print(f"  {said}", highlight=False, markup=False, soft_wrap=True)

    def _why(self) -> None:
        """Say what the task that failed said last."""
        for task in self.api.tasks(self.dag_id, self.run_id):
            if task.state == "failed":
                lines = self.api.task_log(self.dag_id, self.run_id, task.task_id, task.try_number)
                told = [line for line in lines if line.strip() and not line.startswith("::")]
                self.console.print(f"What {task.task_id} said last:")
                for line in told[-8:]:
                    self.console.print(f"  {line}", highlight=False, markup=False, soft_wrap=True)


def follow_or_leave(following: Following, how_to_look: str) -> bool:
    """Follow the run; Ctrl-C leaves it going and says so."""
    try:
        return following.follow()
    except KeyboardInterrupt:
        following.console.print(f"\nThe run goes on: {following.run_id}. {how_to_look}", highlight=False)
        raise SystemExit(130) from None
