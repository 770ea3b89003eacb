"""Airflow's web page for the retention benchmark: its API server, and the requests that the page makes."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import httpx

from include.airflow.client import USER, AirflowApi, password
from include.settings import CHECKOUT, Settings
from stack.components import airflow
from tests.support.waiting import wait_until

REPEATS = 3
REQUEST_TIMEOUT_S = 120.0

Parameters = dict[str, str | int]


@contextmanager
def serving(settings: Settings) -> Iterator["Pages"]:
    """Run the API server, without the scheduler, during a block."""
    server = next(process for process in airflow.processes(settings) if process.port is not None)
    with subprocess.Popen(
        server.command,
        cwd=CHECKOUT,
        env=airflow_environment(settings),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            health = AirflowApi(settings.airflow.base_url).health
            wait_until(lambda: "metadatabase" in health(), "Airflow's API server answers")
            yield Pages(settings)
        finally:
            process.terminate()


def airflow_environment(settings: Settings) -> dict[str, str]:
    """Return the environment of Airflow's processes."""
    return {**os.environ, **airflow.environment(settings)}


class Pages:
    """The requests behind the pages that an operator opens, for the DAG `compaction`."""

    def __init__(self, settings: Settings) -> None:
        credentials = {"username": USER, "password": password(settings.home, settings.airflow)}
        url = settings.airflow.base_url
        self._http = httpx.Client(base_url=url, trust_env=False, timeout=REQUEST_TIMEOUT_S)
        answer = self._http.post("/auth/token", json=credentials).raise_for_status()
        self._http.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def slowest_s(self, dag_id: str) -> dict[str, float]:
        """Return the longest of several response times of each request, in seconds; the first request of all is not measured."""
        now = datetime.now(UTC)
        day: Parameters = {"start_date": (now - timedelta(days=1)).isoformat(), "end_date": now.isoformat()}
        grid: Parameters = {"limit": 14, "order_by": "-run_after"}
        newest: Parameters = {"limit": 50}
        requests: dict[str, tuple[str, Parameters]] = {
            "home: figures": ("/ui/dashboard/historical_metrics_data", day),
            "home: DAGs": ("/ui/dashboard/dag_stats", {}),
            "list of DAGs": ("/ui/dags", {"limit": 50, "dag_runs_limit": 14}),
            "grid: runs": (f"/ui/grid/runs/{dag_id}", grid),
            "grid: structure": (f"/ui/grid/structure/{dag_id}", grid),
            "list of runs": (f"/api/v2/dags/{dag_id}/dagRuns", {**newest, "order_by": "-run_after"}),
            "list of tasks": (
                "/api/v2/dags/~/dagRuns/~/taskInstances",
                {**newest, "order_by": "-start_date"},
            ),
            "audit log": ("/api/v2/eventLogs", {**newest, "order_by": "-when"}),
            "asset events": ("/api/v2/assets/events", {**newest, "order_by": "-timestamp"}),
        }
        self._http.get("/ui/config").raise_for_status()
        return {name: self._slowest_s(*request) for name, request in requests.items()}

    def _slowest_s(self, path: str, parameters: Parameters) -> float:
        taken = []
        for _ in range(REPEATS):
            began_s = time.monotonic()
            self._http.get(path, params=parameters).raise_for_status()
            taken.append(time.monotonic() - began_s)
        return max(taken)
