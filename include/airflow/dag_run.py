"""A run of a DAG, triggered through Airflow's REST API and followed as a sequence of events."""

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Self

from include.airflow.client import AirflowApi, AirflowUnavailableError, TaskState, airflow_api
from include.airflow.names import ABORTED, REFUSED
from include.errors import FoldlakeError
from include.settings import Settings
from include.work_progress import PATTERN

POLL_INTERVAL_S = 1.0
# Airflow may be restarted while a run is followed.
OUTAGE_TIMEOUT_S = 180.0
LAST_LINES = 8
ENDED = frozenset({"success", "failed", "skipped", "upstream_failed", "removed"})


class RunTimeoutError(FoldlakeError):
    """A run did not end in time."""


@dataclass(frozen=True)
class TaskChanged:
    """A task changed its state or started another try."""

    task: TaskState


@dataclass(frozen=True)
class TaskProgress:
    """A running task logged how far it is, such as "catch up of orders v2: 400 of 1,000 events"."""

    task_id: str
    text: str


@dataclass(frozen=True)
class TaskFailure:
    """A failed task of a run that did not succeed, with the last lines of its log."""

    task_id: str
    last_lines: tuple[str, ...]


@dataclass(frozen=True)
class RunRefused:
    """The run's first task has refused its request, and the other tasks were skipped."""

    reason: str


@dataclass(frozen=True)
class RunEnded:
    """The last event. succeeded: whether all awaited tasks succeeded."""

    succeeded: bool


RunEvent = TaskChanged | TaskProgress | TaskFailure | RunRefused | RunEnded


class DagRun:
    """A run of a DAG. `url` is its page in Airflow; `is_aborted` tells, once the run has ended, whether its rebuild was aborted."""

    def __init__(self, api: AirflowApi, dag_id: str, run_id: str, url: str = "") -> None:
        self.run_id = run_id
        self.url = url
        self.is_aborted = False
        self._api = api
        self._dag_id = dag_id
        self._seen: dict[str, tuple[str | None, int]] = {}
        self._progress = ""

    @classmethod
    def trigger(
        cls, settings: Settings, dag_id: str, conf: dict[str, Any], *, note: str | None = None
    ) -> Self:
        """Start a run; raises AirflowUnavailableError. Airflow accepts unknown fields in `conf`: check them first."""
        api = airflow_api(settings.home, settings.airflow)
        run_id = api.trigger(dag_id, conf, note)
        return cls(api, dag_id, run_id, f"{settings.airflow.pages_url}/dags/{dag_id}/runs/{run_id}")

    def follow(self, until: Collection[str], *, timeout_s: float = float("inf")) -> Iterator[RunEvent]:
        """Yield events until all tasks in `until` have succeeded, or the run has ended.

        Raises AirflowUnavailableError when Airflow is down for OUTAGE_TIMEOUT_S, RunTimeoutError after `timeout_s` seconds.
        """
        began_s = answered_s = time.monotonic()
        while True:
            try:
                tasks = self._api.tasks(self._dag_id, self.run_id)
                yield from self._changes(tasks)
                succeeded = {task.task_id for task in tasks if task.state == "success"}
                if succeeded.issuperset(until):
                    yield RunEnded(succeeded=True)
                    return
                if self._api.run_state(self._dag_id, self.run_id) in (None, "success", "failed"):
                    yield from self._reasons()
                    yield RunEnded(succeeded=False)
                    return
                answered_s = time.monotonic()
            except AirflowUnavailableError:
                if time.monotonic() - answered_s > OUTAGE_TIMEOUT_S:
                    raise
            if time.monotonic() - began_s > timeout_s:
                raise RunTimeoutError(
                    f"Run {self.run_id} of the DAG {self._dag_id} has not ended within {timeout_s:.0f} s: {self.url}"
                )
            time.sleep(POLL_INTERVAL_S)

    def has_succeeded(self, task_id: str) -> bool:
        """Return whether a task had succeeded at the last poll."""
        return self._seen.get(task_id, (None, 0))[0] == "success"

    def _changes(self, tasks: list[TaskState]) -> Iterator[RunEvent]:
        for task in sorted(tasks, key=lambda t: t.state not in ENDED):
            now = (task.state, task.try_number)
            if self._seen.get(task.task_id) != now:
                self._seen[task.task_id] = now
                yield TaskChanged(task)
            if task.state == "running":
                yield from self._task_progress(task)

    def _task_progress(self, task: TaskState) -> Iterator[TaskProgress]:
        lines = self._log(task)
        found = next((match[0] for line in reversed(lines) if (match := PATTERN.search(line))), "")
        text = found.removeprefix("progress: ")
        if text and text != self._progress:
            self._progress = text
            yield TaskProgress(task.task_id, text)

    def _reasons(self) -> Iterator[RunEvent]:
        note = self._api.note(self._dag_id, self.run_id)
        self.is_aborted = note.startswith(ABORTED)
        if self.is_aborted:
            # Its tasks failed because the run was ended.
            return
        yield from self._failures()
        if note.startswith(REFUSED):
            yield RunRefused(note.removeprefix(REFUSED))

    def _failures(self) -> Iterator[TaskFailure]:
        for task in self._api.tasks(self._dag_id, self.run_id):
            if task.state == "failed":
                lines = [line for line in self._log(task) if line.strip() and not line.startswith("::")]
                yield TaskFailure(task.task_id, tuple(lines[-LAST_LINES:]))

    def _log(self, task: TaskState) -> list[str]:
        return self._api.task_log(self._dag_id, self.run_id, task.task_id, task.try_number)
