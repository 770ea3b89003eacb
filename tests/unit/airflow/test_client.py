"""The client of Airflow's REST API while Airflow is busy."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest

from include.airflow import client as airflow_api
from include.airflow.client import AirflowApi, AirflowUnavailableError

LATE_S = 0.6


class Airflow(ThreadingHTTPServer):
    """Starts a run and responds after the client's timeout, or starts no run at all."""

    def __init__(self, *, takes_runs: bool) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.takes_runs = takes_runs
        self.posts = 0
        self.runs: set[str] = set()


class Answers(BaseHTTPRequestHandler):
    """The responses of this Airflow."""

    server: Airflow

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_POST(self) -> None:
        """Start a run, if this Airflow does."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.posts += 1
        if self.server.takes_runs:
            self.server.runs.add(body["dag_run_id"])
        time.sleep(LATE_S)

    def do_GET(self) -> None:
        """Return the run's state, if there is such a run."""
        found = any(self.path.endswith(quote(run_id)) for run_id in self.server.runs)
        answer = json.dumps({"state": "queued"} if found else {}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


@pytest.fixture
def airflow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Airflow]:
    monkeypatch.setattr(airflow_api, "REQUEST_TIMEOUT_S", LATE_S / 3)
    monkeypatch.setattr(airflow_api, "LATE_ANSWER_S", LATE_S)
    with Airflow(takes_runs=request.param) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def client(server: Airflow) -> AirflowApi:
    return AirflowApi(f"http://127.0.0.1:{server.server_port}")


@pytest.mark.parametrize("airflow", [True], indirect=True)
def test_run_that_started_is_not_reported_as_failed(airflow: Airflow) -> None:
    run_id = client(airflow).trigger("rebuild")

    assert airflow.runs == {run_id}
    assert airflow.posts == 1, "the run is looked up, not triggered twice"


@pytest.mark.parametrize("airflow", [False], indirect=True)
def test_run_that_did_not_start_is_an_error(airflow: Airflow) -> None:
    with pytest.raises(AirflowUnavailableError, match=r"Airflow API call POST .* failed"):
        client(airflow).trigger("rebuild")
