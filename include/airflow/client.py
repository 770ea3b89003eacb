"""A small client of Airflow's REST API: the calls that the command line, the stack and the tasks make."""

import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import httpx

from include.errors import FoldlakeError
from include.http_replies import BUSY, REFUSED, retry_after_s, without_credentials
from include.settings import AirflowSettings
from include.waiting import retry

REQUEST_TIMEOUT_S = 5.0
# A readiness probe must return within 2 s.
HEALTH_TIMEOUT_S = 1.8
# How long `trigger` repeats its call while a busy Airflow does not respond in time.
TRIGGER_TIMEOUT_S = 60.0
TRIGGER_POLL_S = 1.0
# SQLite rejects a transaction at once if another one has written since it began to read. Airflow has rolled it back and
# answers 500: the same call succeeds a moment later.
ROLLED_BACK = "Database error"
ROLLED_BACK_RETRIES = 5
ROLLED_BACK_PAUSE_S = 0.5
MAX_NOTE_CHARACTERS = 1000
NO_AIRFLOW = "the reply is none of Airflow's: check that FOLDLAKE_AIRFLOW_URL is its address, and that no proxy replies instead"
MAX_POOL_TASKS = 100

# The states in which `mark_run` can end a run.
RunState = Literal["success", "failed"]
USER = "admin"


class AirflowUnavailableError(FoldlakeError):
    """Airflow's API server does not respond, or rejects the call; `status` is the response's HTTP status, if there is one."""

    status: int | None = None

    @classmethod
    def because(cls, call: str, reason: object, status: int | None = None) -> "AirflowUnavailableError":
        """Return the error of a failed call, such as "GET http://…"."""
        hint = "`./foldlake status` shows whether Airflow runs."
        if status in REFUSED:
            hint = "Check that FOLDLAKE_AIRFLOW_PASSWORD is the password of its user admin, and what this user may do."
        error = cls(f"Airflow API call {call} failed: {reason}. {hint}")
        error.status = status
        return error


@dataclass(frozen=True)
class TaskState:
    """A task of a run: Airflow's name of its state (None: not scheduled yet), and its current try's number and duration."""

    task_id: str
    state: str | None
    try_number: int
    duration_s: float | None = None


@dataclass(frozen=True)
class PoolTask:
    """A task that occupies a slot of a pool or waits for one."""

    dag_id: str
    run_id: str
    task_id: str
    state: str


class AirflowApi:
    """One user's session with one Airflow. Logs in at the first call that requires it, and again when the token has expired."""

    def __init__(self, base_url: str, user: str = "", password: str = "") -> None:
        self._base_url = base_url.rstrip("/")
        self._credentials = {"username": user, "password": password}
        # `trust_env=False`: the user's proxy cannot reach an address of this machine.
        self._http = httpx.Client(trust_env=False, timeout=REQUEST_TIMEOUT_S)
        # Until then, Airflow or a proxy in front of it accepts no call.
        self._not_before_s = 0.0

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
                retryable=lambda error: (
                    isinstance(error.__cause__, httpx.ReadTimeout) or getattr(error, "status", None) in BUSY
                ),
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
            # Any server answers 404 to a path that it does not have.
            if error.status == HTTPStatus.NOT_FOUND and run_id in str(error).partition(" failed: ")[2]:
                return None
            raise

    def tasks(self, dag_id: str, run_id: str) -> list[TaskState]:
        """Return the tasks of a run, in no particular order."""
        path = f"dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances"
        return [
            TaskState(str(task["task_id"]), task["state"], int(task["try_number"]), task["duration"])
            for task in self._call("GET", path)["task_instances"]
        ]

    def pool_tasks(self, pool: str) -> list[PoolTask]:
        """Return the tasks that occupy slots of a pool, then those that wait for one."""
        states = ("running", "queued", "scheduled", "up_for_retry")
        answer = self._call(
            "GET",
            "dags/~/dagRuns/~/taskInstances",
            params={"pool": pool, "state": states, "limit": MAX_POOL_TASKS},
        )
        found = [
            PoolTask(str(task["dag_id"]), str(task["dag_run_id"]), str(task["task_id"]), str(task["state"]))
            for task in answer["task_instances"]
        ]
        return sorted(found, key=lambda task: states.index(task.state))

    def run_conf(self, dag_id: str, run_id: str) -> dict[str, Any]:
        """Return the fields with which a run was triggered."""
        return dict(self._call("GET", f"dags/{dag_id}/dagRuns/{quote(run_id)}")["conf"] or {})

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
        active = ("queued", "running", "restarting", "deferred")
        return [task.task_id for task in self.tasks(dag_id, run_id) if task.state in active]

    def mark_run(self, dag_id: str, run_id: str, state: RunState) -> None:
        """End a run; its running tasks are stopped within seconds."""
        self._call("PATCH", f"dags/{dag_id}/dagRuns/{quote(run_id)}", json={"state": state})

    def _call(self, method: str, path: str, **arguments: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
        url = f"{self._base_url}/api/v2/{path}"
        wait_s = self._not_before_s - time.monotonic()
        if wait_s > 0:
            reason = f"it accepts no call within the next {wait_s:.0f} s"
            raise AirflowUnavailableError.because(
                f"{method} {without_credentials(url)}", reason, HTTPStatus.TOO_MANY_REQUESTS
            )
        response = self._request(method, url, **arguments)
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            self._log_in()
            response = self._request(method, url, **arguments)
        for _ in range(ROLLED_BACK_RETRIES):
            if response.status_code != HTTPStatus.INTERNAL_SERVER_ERROR or ROLLED_BACK not in response.text:
                break
            time.sleep(ROLLED_BACK_PAUSE_S)
            response = self._request(method, url, **arguments)
        return self._json(method, url, response)

    def _log_in(self) -> None:
        url = f"{self._base_url}/auth/token"
        reply = self._json("POST", url, self._request("POST", url, json=self._credentials))
        try:
            self._http.headers["Authorization"] = f"Bearer {reply['access_token']}"
        except (TypeError, KeyError) as error:
            raise AirflowUnavailableError.because(f"POST {without_credentials(url)}", NO_AIRFLOW) from error

    def _request(self, method: str, url: str, **arguments: Any) -> httpx.Response:  # noqa: ANN401 - those of httpx
        try:
            return self._http.request(method, url, **arguments)
        except httpx.HTTPError as error:
            # A timeout of httpx has an empty message.
            reason = str(error) or type(error).__name__
            raise AirflowUnavailableError.because(f"{method} {without_credentials(url)}", reason) from error

    def _json(self, method: str, url: str, response: httpx.Response) -> Any:  # noqa: ANN401 - JSON
        status, reason = response.status_code, f"{response.status_code} {response.text[:500]}"
        if status in BUSY:
            wait_s = retry_after_s(response.headers.get("Retry-After"))
            self._not_before_s = time.monotonic() + (wait_s or 0.0)
        if not response.is_success:
            raise AirflowUnavailableError.because(f"{method} {without_credentials(url)}", reason, status)
        try:
            return response.json()
        except ValueError as error:
            raise AirflowUnavailableError.because(
                f"{method} {without_credentials(url)}", NO_AIRFLOW
            ) from error


def airflow_home(home: Path) -> Path:
    """Return AIRFLOW_HOME."""
    return home / "airflow"


def passwords_path(home: Path) -> Path:
    """Return the file in which Airflow's simple auth manager stores the passwords: a JSON object, user -> password."""
    return airflow_home(home) / "passwords.json"


def password(home: Path, airflow: AirflowSettings) -> str:
    """Return the password of Airflow's user `admin`: the setting, or the one generated for this home.

    Raises OSError, ValueError or KeyError when the file that stores it is missing or unreadable.
    """
    return airflow.password.get_secret_value() or str(json.loads(passwords_path(home).read_text())[USER])


def airflow_api(home: Path, airflow: AirflowSettings) -> AirflowApi:
    """Return a client of this Airflow, which logs in at its first call; raises the same errors as `password`."""
    return AirflowApi(airflow.base_url, USER, password(home, airflow))
