"""A small client of Airflow's REST API: what the command line and the stack ask of it."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import quote

import requests

from include.errors import FoldlakeError

REQUEST_TIMEOUT_S = 5.0
# Readiness is asked for again and again and must be answered within 2 s.
HEALTH_TIMEOUT_S = 1.8
# How long after an unanswered call its effect may be seen.
LATE_ANSWER_S = 20.0
MAX_NOTE_CHARACTERS = 1000

# How a run can be ended from outside.
RunState = Literal["success", "failed"]


class AirflowUnavailableError(FoldlakeError):
    """Airflow's API server does not answer, or refuses; `status` is that of its answer, if there was one."""

    status: int | None = None

    @classmethod
    def because(cls, url: str, reason: object, status: int | None = None) -> "AirflowUnavailableError":
        """Say which call failed and why."""
        error = cls(f"Airflow did not do {url}: {reason}. Hint: `./foldlake status` shows whether it runs.")
        error.status = status
        return error


@dataclass(frozen=True)
class TaskState:
    """A task of a run: Airflow's word for its state (None: not begun), which try it is at, how long that took."""

    task_id: str
    state: str | None
    try_number: int
    duration_s: float | None = None


class AirflowApi:
    """One Airflow, as one user. Logs in at the first call that needs it, and again when the token has expired."""

    def __init__(self, base_url: str, user: str = "", password: str = "") -> None:
        self._base_url = base_url.rstrip("/")
        self._credentials = {"username": user, "password": password}
        self._session = requests.Session()
        # A proxy of the user's would be asked for an address of this machine.
        self._session.trust_env = False

    def health(self) -> frozenset[str]:
        """Return the components that are healthy: of metadatabase, scheduler, triggerer, dag_processor. Never raises."""
        try:
            answer = self._session.get(
                f"{self._base_url}/api/v2/monitor/health", timeout=HEALTH_TIMEOUT_S
            ).json()
        except (requests.RequestException, ValueError):
            return frozenset()
        return frozenset(name for name, state in answer.items() if (state or {}).get("status") == "healthy")

    def dag_exists(self, dag_id: str) -> bool:
        """Tell whether the DAG has been read from its file."""
        return bool(self._call("GET", "dags", params={"dag_id_pattern": dag_id})["total_entries"])

    def set_paused(self, dag_id: str, *, paused: bool) -> None:
        """Pause a DAG, so that no run begins and no task of a run begins, or let it go on."""
        self._call("PATCH", f"dags/{dag_id}", json={"is_paused": paused})

    def is_paused(self, dag_id: str) -> bool:
        """Tell whether a DAG is paused."""
        return bool(self._call("GET", f"dags/{dag_id}")["is_paused"])

    def trigger(self, dag_id: str, conf: dict[str, Any] | None = None, note: str | None = None) -> str:
        """Start a run with these parameters and return its run id. Airflow accepts unknown ones: check them before.

        A busy Airflow may begin a run and answer too late: then it is asked whether it has, rather than told twice.
        """
        run_id = f"manual__{datetime.now(UTC).isoformat()}"
        body = {"dag_run_id": run_id, "logical_date": None, "conf": conf or {}, "note": note}
        try:
            self._call("POST", f"dags/{dag_id}/dagRuns", json=body)
        except AirflowUnavailableError as error:
            if not isinstance(error.__cause__, requests.ReadTimeout) or not self._has_begun(dag_id, run_id):
                raise
        return run_id

    def _has_begun(self, dag_id: str, run_id: str) -> bool:
        deadline_s = time.monotonic() + LATE_ANSWER_S
        while True:
            try:
                if self.run_state(dag_id, run_id) is not None:
                    return True
            except AirflowUnavailableError:
                pass
            if time.monotonic() > deadline_s:
                return False
            time.sleep(1)

    def set_note(self, dag_id: str, run_id: str, note: str) -> None:
        """Write a run's note, as the list of runs shows it; cut at what Airflow keeps."""
        self._call(
            "PATCH", f"dags/{dag_id}/dagRuns/{quote(run_id)}", json={"note": note[:MAX_NOTE_CHARACTERS]}
        )

    def run_state(self, dag_id: str, run_id: str) -> str | None:
        """Return the state of a run: queued, running, success or failed; None when there is no such run."""
        try:
            return str(self._call("GET", f"dags/{dag_id}/dagRuns/{quote(run_id)}")["state"])
        except AirflowUnavailableError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def tasks(self, dag_id: str, run_id: str) -> list[TaskState]:
        """Return the tasks of a run, in no order."""
        path = f"dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances"
        return [
            TaskState(str(task["task_id"]), task["state"], int(task["try_number"]), task["duration"])
            for task in self._call("GET", path)["task_instances"]
        ]

    def task_log(self, dag_id: str, run_id: str, task_id: str, try_number: int) -> list[str]:
        """Return what one try of a task has logged so far, line by line; empty while there is nothing."""
        path = f"dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task_id}/logs/{try_number}"
        try:
            content = self._call("GET", path, params={"full_content": True})["content"]
        except AirflowUnavailableError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return []
            raise
        return [str(line.get("event", "")) if isinstance(line, dict) else str(line) for line in content]

    def answer(self, dag_id: str, run_id: str, task_id: str, option: str) -> None:
        """Answer a task that waits for a person."""
        path = f"dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task_id}/-1/hitlDetails"
        self._call("PATCH", path, json={"chosen_options": [option], "params_input": {}})

    def runs(self, dag_id: str, *, limit: int = 10) -> dict[str, str]:
        """Return the newest runs, newest first: run id → state."""
        answer = self._call(
            "GET", f"dags/{dag_id}/dagRuns", params={"order_by": "-run_after", "limit": limit}
        )
        return {str(run["dag_run_id"]): str(run["state"]) for run in answer["dag_runs"]}

    def active_runs(self, dag_id: str) -> list[str]:
        """Return the ids of the runs that are queued or running."""
        return [run_id for run_id, state in self.runs(dag_id).items() if state in ("queued", "running")]

    def running_tasks(self, dag_id: str, run_id: str) -> list[str]:
        """Return the ids of a run's tasks that are queued or running."""
        answer = self._call("GET", f"dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances")
        active = ("queued", "running", "restarting")
        return [str(task["task_id"]) for task in answer["task_instances"] if task["state"] in active]

    def mark_run(self, dag_id: str, run_id: str, state: RunState) -> None:
        """End a run; tasks of it that still run are ended within seconds."""
        self._call("PATCH", f"dags/{dag_id}/dagRuns/{quote(run_id)}", json={"state": state})

    def _call(self, method: str, path: str, **arguments: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
        url = f"{self._base_url}/api/v2/{path}"
        try:
            response = self._session.request(method, url, timeout=REQUEST_TIMEOUT_S, **arguments)
            if response.status_code == HTTPStatus.UNAUTHORIZED:
                self._log_in()
                response = self._session.request(method, url, timeout=REQUEST_TIMEOUT_S, **arguments)
        except requests.RequestException as error:
            raise AirflowUnavailableError.because(f"{method} {url}", error) from error
        if not response.ok:
            raise AirflowUnavailableError.because(
                f"{method} {url}", f"{response.status_code} {response.text[:500]}", response.status_code
            )
        return response.json()

    def _log_in(self) -> None:
        url = f"{self._base_url}/auth/token"
        response = self._session.post(url, json=self._credentials, timeout=REQUEST_TIMEOUT_S)
        if not response.ok:
            raise AirflowUnavailableError.because(
                f"POST {url}", f"{response.status_code} {response.text[:500]}"
            )
        self._session.headers["Authorization"] = f"Bearer {response.json()['access_token']}"
