"""A small client of Airflow's REST API: the calls that the command line, the stack and the tasks make."""

from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Literal
from urllib.parse import quote

import httpx

from include.errors import FoldlakeError
from include.waiting import retry

REQUEST_TIMEOUT_S = 5.0
# A readiness probe must return within 2 s.
HEALTH_TIMEOUT_S = 1.8
# How long `trigger` repeats its call while a busy Airflow does not respond in time.
TRIGGER_TIMEOUT_S = 60.0
TRIGGER_POLL_S = 1.0
MAX_NOTE_CHARACTERS = 1000

# The states in which `mark_run` can end a run.
RunState = Literal["success", "failed"]


class AirflowUnavailableError(FoldlakeError):
    """Airflow's API server does not respond, or rejects the call; `status` is the response's HTTP status, if there is one."""

    status: int | None = None

    @classmethod
    def because(cls, call: str, reason: object, status: int | None = None) -> "AirflowUnavailableError":
        """Return the error of a failed call, such as "GET http://…"."""
        error = cls(
            f"Airflow API call {call} failed: {reason}. `./foldlake status` shows whether Airflow runs."
        )
        error.status = status
        return error


@dataclass(frozen=True)
class TaskState:
    """A task of a run: Airflow's name of its state (None: not scheduled yet), and its current try's number and duration."""

    task_id: str
    state: str | None
    try_number: int
    duration_s: float | None = None


class AirflowApi:
    """One user's session with one Airflow. Logs in at the first call that requires it, and again when the token has expired."""

    def __init__(self, base_url: str, user: str = "", password: str = "") -> None:
        self._base_url = base_url.rstrip("/")
        self._credentials = {"username": user, "password": password}
        # `trust_env=False`: the user's proxy cannot reach an address of this machine.
        self._http = httpx.Client(trust_env=False, timeout=REQUEST_TIMEOUT_S)

    def health(self) -> frozenset[str]:
        """Return the healthy components out of metadatabase, scheduler, triggerer and dag_processor. Never raises."""
        try:
            response = self._http.get(f"{self._base_url}/api/v2/monitor/health", timeout=HEALTH_TIMEOUT_S)
            components = response.json()
        except (httpx.HTTPError, ValueError):
            return frozenset()
        return frozenset(
            name for name, state in components.items() if (state or {}).get("status") == "healthy"
        )

    def dag_exists(self, dag_id: str) -> bool:
        """Return whether Airflow has loaded the DAG from its file."""
        return bool(self._call("GET", "dags", params={"dag_id_pattern": dag_id})["total_entries"])

    def set_paused(self, dag_id: str, *, paused: bool) -> None:
        """Pause a DAG, so that no run and no task starts, or unpause it."""
        self._call("PATCH", f"dags/{dag_id}", json={"is_paused": paused})

    def is_paused(self, dag_id: str) -> bool:
        """Return whether a DAG is paused."""
        return bool(self._call("GET", f"dags/{dag_id}")["is_paused"])

    def trigger(self, dag_id: str, conf: dict[str, Any] | None = None, note: str | None = None) -> str:
        """Start a run with these parameters and return its run id. Airflow accepts unknown parameters: check them first.

        A busy Airflow may respond too late, whether or not it has started the run. The call is then repeated with the same
        run id, which Airflow accepts once only.

        Raises:
            AirflowUnavailableError: Airflow is down, rejected the call, or did not respond within TRIGGER_TIMEOUT_S; in the
                last case it may still start the run.
        """
        run_id = f"manual__{datetime.now(UTC).isoformat()}"
        body = {"dag_run_id": run_id, "logical_date": None, "conf": conf or {}, "note": note}
        try:
            retry(
                lambda: self._call("POST", f"dags/{dag_id}/dagRuns", json=body),
                retryable=lambda error: isinstance(error.__cause__, httpx.ReadTimeout),
                timeout_s=TRIGGER_TIMEOUT_S,
                poll_s=TRIGGER_POLL_S,
            )
        except AirflowUnavailableError as error:
            # An earlier call, which timed out, has started the run.
            if error.status != HTTPStatus.CONFLICT:
                raise
        return run_id

    def set_note(self, dag_id: str, run_id: str, note: str) -> None:
        """Set a run's note, which Airflow shows in the list of runs; truncated to the length that Airflow stores."""
        self._call(
            "PATCH", f"dags/{dag_id}/dagRuns/{quote(run_id)}", json={"note": note[:MAX_NOTE_CHARACTERS]}
        )

    def note(self, dag_id: str, run_id: str) -> str:
        """Return a run's note; empty when it has none."""
        return str(self._call("GET", f"dags/{dag_id}/dagRuns/{quote(run_id)}")["note"] or "")

    def run_state(self, dag_id: str, run_id: str) -> str | None:
        """Return the state of a run: queued, running, success or failed; None when there is no such run."""
        try:
            return str(self._call("GET", f"dags/{dag_id}/dagRuns/{quote(run_id)}")["state"])
        except AirflowUnavailableError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def tasks(self, dag_id: str, run_id: str) -> list[TaskState]:
        """Return the tasks of a run, in no particular order."""
        path = f"dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances"
        return [
            TaskState(str(task["task_id"]), task["state"], int(task["try_number"]), task["duration"])
            for task in self._call("GET", path)["task_instances"]
        ]

    def task_log(self, dag_id: str, run_id: str, task_id: str, try_number: int) -> list[str]:
        """Return the lines that one try of a task has logged so far."""
        path = f"dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task_id}/logs/{try_number}"
        try:
            content = self._call("GET", path, params={"full_content": True})["content"]
        except AirflowUnavailableError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return []
            raise
        return [str(line.get("event", "")) if isinstance(line, dict) else str(line) for line in content]

    def answer(self, dag_id: str, run_id: str, task_id: str, option: str) -> None:
        """Choose an option of a task that waits for a person."""
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
        """Return the ids of a run's tasks that are queued, running or deferred."""
        answer = self._call("GET", f"dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances")
        active = ("queued", "running", "restarting", "deferred")
        return [str(task["task_id"]) for task in answer["task_instances"] if task["state"] in active]

    def mark_run(self, dag_id: str, run_id: str, state: RunState) -> None:
        """End a run; its running tasks are stopped within seconds."""
        self._call("PATCH", f"dags/{dag_id}/dagRuns/{quote(run_id)}", json={"state": state})

    def _call(self, method: str, path: str, **arguments: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
        url = f"{self._base_url}/api/v2/{path}"
        try:
            response = self._http.request(method, url, **arguments)
            if response.status_code == HTTPStatus.UNAUTHORIZED:
                self._log_in()
                response = self._http.request(method, url, **arguments)
        except httpx.HTTPError as error:
            # A timeout of httpx has an empty message.
            raise AirflowUnavailableError.because(
                f"{method} {url}", str(error) or type(error).__name__
            ) from error
        if not response.is_success:
            raise AirflowUnavailableError.because(
                f"{method} {url}", f"{response.status_code} {response.text[:500]}", response.status_code
            )
        return response.json()

    def _log_in(self) -> None:
        url = f"{self._base_url}/auth/token"
        response = self._http.post(url, json=self._credentials)
        if not response.is_success:
            raise AirflowUnavailableError.because(
                f"POST {url}", f"{response.status_code} {response.text[:500]}"
            )
        self._http.headers["Authorization"] = f"Bearer {response.json()['access_token']}"
