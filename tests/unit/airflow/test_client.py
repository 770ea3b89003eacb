"""The client of Airflow's REST API while Airflow is busy."""

import contextlib
import json
import math
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from include.airflow import client as airflow_api
from include.airflow.client import AirflowApi, AirflowUnavailableError
from tests.support.http.played_server import HTML, PlayedServer, Reply, played_server
from tests.support.temporary_stack import free_ports

LATE_S = 0.6


class Airflow(ThreadingHTTPServer):
    """Responds to its first calls after the client's timeout, and starts a run at one of its calls, or at none."""

    def __init__(self, *, late_calls: int, starts_at_call: int) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.late_calls = late_calls
        self.starts_at_call = starts_at_call
        self.posts = 0
        self.runs: list[str] = []


class Answers(BaseHTTPRequestHandler):
    """The responses of this Airflow."""

    server: Airflow

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_POST(self) -> None:
        """Start a run, if it is time to and there is no run with this id, as Airflow does."""
        run_id = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["dag_run_id"]
        self.server.posts += 1
        exists = run_id in self.server.runs
        if self.server.posts >= self.server.starts_at_call and not exists:
            self.server.runs.append(run_id)
        if self.server.posts <= self.server.late_calls:
            time.sleep(LATE_S)
            return
        answer = json.dumps(
            {"detail": "a row with this id exists"} if exists else {"state": "queued"}
        ).encode()
        self.send_response(409 if exists else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


@contextlib.contextmanager
def airflow(*, late_calls: int, starts_at_call: int) -> Iterator[Airflow]:
    with Airflow(late_calls=late_calls, starts_at_call=starts_at_call) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(airflow_api, "REQUEST_TIMEOUT_S", LATE_S / 3)
    monkeypatch.setattr(airflow_api, "TRIGGER_TIMEOUT_S", 4 * LATE_S)
    monkeypatch.setattr(airflow_api, "TRIGGER_POLL_S", LATE_S / 10)


def client(server: Airflow) -> AirflowApi:
    return AirflowApi(f"http://127.0.0.1:{server.server_port}")


def test_run_that_started_at_a_late_call_is_neither_reported_as_failed_nor_started_twice() -> None:
    with airflow(late_calls=1, starts_at_call=1) as server:
        run_id = client(server).trigger("rebuild")

    assert server.runs == [run_id]
    assert server.posts == 2


def test_call_is_repeated_until_airflow_responds() -> None:
    with airflow(late_calls=2, starts_at_call=3) as server:
        run_id = client(server).trigger("rebuild")

    assert server.runs == [run_id]


def test_run_that_did_not_start_is_an_error() -> None:
    with (
        airflow(late_calls=1000, starts_at_call=1000) as server,
        pytest.raises(AirflowUnavailableError, match=r"Airflow API call POST .* failed"),
    ):
        client(server).trigger("rebuild")
    assert server.posts > 1


def test_airflow_that_is_down_is_an_error_without_a_second_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(airflow_api, "TRIGGER_TIMEOUT_S", math.inf)
    (port,) = free_ports(1)

    with pytest.raises(AirflowUnavailableError, match="refused"):
        AirflowApi(f"http://127.0.0.1:{port}").trigger("rebuild")


@pytest.fixture
def played() -> Iterator[PlayedServer]:
    with played_server() as server:
        yield server


RUN = "GET /api/v2/dags/rebuild/dagRuns/r1"
UNKNOWN_RUN = {"detail": "The DagRun with dag_id: `rebuild` and run_id: `r1` was not found"}


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(403, {"detail": "Forbidden"}), "FOLDLAKE_AIRFLOW_PASSWORD"),
        (Reply(404, {"detail": "Not Found"}), "404"),
        (Reply(404, HTML), "404"),
        (Reply(302, "", {"Location": "/sign-in"}), "302"),
        (Reply(500, HTML), "500"),
        (Reply(200, HTML), "FOLDLAKE_AIRFLOW_URL"),
    ],
)
def test_reply_that_says_nothing_about_a_run_is_an_error(
    played: PlayedServer, reply: Reply, message: str
) -> None:
    played.replies[RUN] = reply

    with pytest.raises(AirflowUnavailableError, match=message):
        AirflowApi(played.url).run_state("rebuild", "r1")


def test_run_that_airflow_does_not_have_has_no_state(played: PlayedServer) -> None:
    played.replies[RUN] = Reply(404, UNKNOWN_RUN)

    assert AirflowApi(played.url).run_state("rebuild", "r1") is None


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(401, {"detail": "Invalid credentials"}), "FOLDLAKE_AIRFLOW_PASSWORD"),
        (Reply(200, HTML), "FOLDLAKE_AIRFLOW_URL"),
        (Reply(200, "[]"), "FOLDLAKE_AIRFLOW_URL"),
        (Reply(200, "{}"), "FOLDLAKE_AIRFLOW_URL"),
    ],
)
def test_login_that_fails_names_its_setting(played: PlayedServer, reply: Reply, message: str) -> None:
    played.replies[RUN] = Reply(401, HTML)
    played.replies["POST /auth/token"] = reply

    with pytest.raises(AirflowUnavailableError, match=message):
        AirflowApi(played.url).run_state("rebuild", "r1")


def test_login_is_repeated_once_it_is_accepted(played: PlayedServer) -> None:
    api = AirflowApi(played.url)
    played.replies[RUN] = Reply(401, HTML)
    played.replies["POST /auth/token"] = Reply(401, HTML)
    with pytest.raises(AirflowUnavailableError):
        api.run_state("rebuild", "r1")

    played.replies[RUN] = Reply(200, {"state": "running"})

    assert api.run_state("rebuild", "r1") == "running"


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_busy_airflow_gets_no_call_before_retry_after(played: PlayedServer, status: int) -> None:
    api = AirflowApi(played.url)
    played.replies[RUN] = Reply(status, HTML, {"Retry-After": "30"})

    for message in (str(status), "accepts no call within the next 30 s"):
        with pytest.raises(AirflowUnavailableError, match=message) as raised:
            api.run_state("rebuild", "r1")
        assert raised.value.status in {status, 429}

    assert played.requests == [RUN]


def test_run_is_triggered_again_once_airflow_is_no_longer_busy(
    played: PlayedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = "POST /api/v2/dags/rebuild/dagRuns"
    played.replies[post] = Reply(429, HTML)

    def recover(_: float) -> None:
        played.replies[post] = Reply(200, {"state": "queued"})

    monkeypatch.setattr(time, "sleep", recover)

    assert AirflowApi(played.url).trigger("rebuild").startswith("manual__")
    assert played.requests == [post, post]


ROLLED_BACK = Reply(
    500, {"detail": {"reason": "Database error", "statement": "hidden", "message": "Serious error"}}
)


def test_call_whose_transaction_was_rolled_back_is_repeated(
    played: PlayedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = "PATCH /api/v2/dags/rebuild/dagRuns/r1"
    played.replies[note] = ROLLED_BACK

    def recover(_: float) -> None:
        played.replies[note] = Reply(200, {"note": "why"})

    monkeypatch.setattr(time, "sleep", recover)

    AirflowApi(played.url).set_note("rebuild", "r1", "why")

    assert played.requests == [note, note]


def test_database_that_stays_broken_is_an_error(
    played: PlayedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    played.replies[RUN] = ROLLED_BACK
    monkeypatch.setattr(airflow_api, "ROLLED_BACK_PAUSE_S", 0.01)

    with pytest.raises(AirflowUnavailableError, match="Database error"):
        AirflowApi(played.url).run_state("rebuild", "r1")

    assert played.requests == [RUN] * (1 + airflow_api.ROLLED_BACK_RETRIES)
