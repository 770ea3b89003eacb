"""The page of a key: it starts one program at a time, waits for its result, and shows it to people and to programs."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask, Response
from flask.testing import FlaskClient

from include.declarations.load import read_model
from include.files import FileLock, write_atomically
from include.settings import Settings
from include.versions.explanation import (
    ExplainedEvent,
    ExplainedVersion,
    Explanation,
    NotExplainedError,
    version_to_explain,
)
from include.versions.version_record import first_version
from query_api.http.answers import flask_response
from query_api.http.explain import explanations as module
from query_api.http.explain.explain_routes import explain_blueprint
from query_api.http.explain.explanations import ExplainRequest, Explanations
from query_api.http.problems import ProblemError, problem_reply
from tests.support.waiting import wait_until

MODEL = read_model("balance")
HTML = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
TIME = "2026-01-02T03:04:05.000Z"


def an_event(number: int, state: str | None) -> ExplainedEvent:
    event = '{"id":"e<1>","customerId":"a/b","amount":5.00}'
    return ExplainedEvent(number, 1, number + 6, TIME, TIME, "FundsAdded", event, state)


EXPLANATION = Explanation(
    read_model="balance",
    key="a/b",
    explained_at=TIME,
    shown=ExplainedVersion(1, "live", 1, "balance", {}, 1_002, '{"amount":10.50}'),
    events=(
        an_event(1, '{"amount":5.00}'),
        an_event(2, '{"amount":10.00}'),
        an_event(1_002, '{"amount":10.50}'),
    ),
    others=(ExplainedVersion(2, "building", 2, "balance", {"1": 7}, 2, None),),
    read_from={"1": 0},
    read_until={"1": 2_000},
    records_read=2_000,
    masked=("FundsAdded.name",),
    difference='node-2 serves {"amount":9.00}.',
)


class Job:
    """In place of the program: writes the explanation once it may."""

    def __init__(self) -> None:
        self.requests: list[ExplainRequest] = []
        self.may_end = threading.Event()
        self.error = ""

    def run(self, request: ExplainRequest, result: Path) -> None:
        """Explain the request, or raise its error."""
        self.requests.append(request)
        assert self.may_end.wait(30)
        if self.error:
            raise NotExplainedError(self.error)
        write_atomically(result, EXPLANATION.to_json())


@pytest.fixture
def job() -> Job:
    return Job()


@pytest.fixture
def client(tmp_path: Path, job: Job, monkeypatch: pytest.MonkeyPatch) -> Iterator[FlaskClient]:
    explanations = Explanations(Settings.of(home=tmp_path), job.run)

    def require_version(request: ExplainRequest) -> None:
        version_to_explain(first_version("balance", 1), request.model, request.version)

    monkeypatch.setattr(explanations, "_require_version", require_version)
    app = Flask(__name__, static_folder=None)

    @app.errorhandler(ProblemError)
    def on_problem(problem: ProblemError) -> Response:
        return flask_response(problem_reply(problem))

    app.register_blueprint(explain_blueprint("node-1", {"balance": MODEL}, explanations, ("'self'",)))
    yield app.test_client()
    job.may_end.set()
    lock = FileLock(tmp_path / "explain" / "lock")
    wait_until(lock.try_acquire, "the job has ended", timeout_s=120)
    lock.release()


def ask(client: FlaskClient, key: str = "a%2Fb", more: str = "") -> tuple[int, dict[str, object]]:
    response = client.get(f"/explain?readModel=balance&key={key}{more}")
    return response.status_code, json.loads(response.text)


def test_a_program_gets_the_explanation_once_the_job_has_ended(client: FlaskClient, job: Job) -> None:
    first = client.get("/explain?readModel=balance&key=a%2Fb")
    assert (first.status_code, first.headers["Retry-After"]) == (202, "1")
    assert ask(client)[1]["status"] == "running"
    assert ask(client, "another") == (
        202,
        {
            "status": "queued",
            "runningForS": None,
            "detail": "The log is being read: ask again until the status is 200.",
        },
    )
    job.may_end.set()
    wait_until(lambda: ask(client)[0] == 200, "the explanation", timeout_s=120)

    text = client.get("/explain?readModel=balance&key=a%2Fb").text

    # Exact: numbers keep their scale.
    assert '"state":{"amount":10.50}' in text
    document = json.loads(text)
    assert document["hiddenEvents"] == 999
    assert [event["number"] for event in document["events"]] == [1, 2, 1_002]
    assert [(request.key, request.version) for request in job.requests] == [("a/b", None)]


def test_a_browser_gets_a_page_that_reloads_itself_until_it_shows_the_events(
    client: FlaskClient, job: Job
) -> None:
    def page() -> str:
        return client.get("/explain?readModel=balance&key=a%2Fb", headers=HTML).text

    waiting = client.get("/explain?readModel=balance&key=a%2Fb", headers=HTML)
    assert waiting.status_code == 202
    assert '<meta http-equiv="refresh" content="1">' in waiting.text
    job.may_end.set()
    wait_until(lambda: "1,002 events of balance" in page(), "the page shows the events", timeout_s=120)

    text = page()

    assert 'http-equiv="refresh"' not in text
    assert "<script" not in text
    assert "999 events not shown here" in text
    assert "<mark>10.00</mark>" in text
    # After the gap, it is not known what has changed.
    assert "<mark>10.50</mark>" not in text
    assert "e&lt;1&gt;" in text
    assert 'href="/explain?readModel=balance&amp;key=a%2Fb&amp;version=2"' in text.replace("a/b", "a%2Fb")
    assert "2,000 records of" in text
    assert "Fault: node-2 serves {&#34;amount&#34;:9.00}." in text
    assert "Left out, because they are personal: FundsAdded.name" in text


def test_a_key_that_is_explained_at_once_is_answered_at_once(client: FlaskClient, job: Job) -> None:
    job.may_end.set()

    status, document = ask(client)

    assert (status, document["difference"]) == (200, 'node-2 serves {"amount":9.00}.')


def test_a_program_that_has_just_ended_is_not_started_again(
    client: FlaskClient, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LockOfAnEndedProgram(FileLock):
        """It becomes free after the look at the result, and before the attempt to take it."""

        def try_acquire(self, note: str = "") -> bool:
            write_atomically(tmp_path / "explain" / f"{note}.json", EXPLANATION.to_json())
            return super().try_acquire(note)

    monkeypatch.setattr(module, "FileLock", LockOfAnEndedProgram)

    assert ask(client)[0] == 200
    assert not job.requests


def test_the_page_without_a_key_is_a_form(client: FlaskClient, job: Job) -> None:
    response = client.get("/explain", headers=HTML)

    assert response.status_code == 200
    assert "<option>balance</option>" in response.text
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    assert not job.requests


@pytest.mark.parametrize(
    ("query", "status", "problem"),
    [
        ("", 400, "missing-read-model"),
        ("readModel=balance", 400, "missing-key"),
        ("readModel=balanc&key=1", 404, "unknown-model"),
        ("readModel=balance&key=1&version=x", 400, "invalid-version"),
        ("readModel=balance&key=1&version=0", 400, "invalid-version"),
        ("readModel=balance&key=1&n=1", 400, "unknown-parameter"),
    ],
)
def test_a_request_that_is_not_valid_starts_no_job(
    client: FlaskClient, job: Job, query: str, status: int, problem: str
) -> None:
    response = client.get(f"/explain?{query}")

    assert (response.status_code, json.loads(response.text)["type"]) == (
        status,
        f"urn:foldlake:problem:{problem}",
    )
    assert not job.requests


def test_an_unknown_version_is_refused_without_a_job(client: FlaskClient, job: Job) -> None:
    wait_until(lambda: ask(client, "1", "&version=99")[0] == 422, "the refusal", timeout_s=120)

    assert (
        ask(client, "1", "&version=99")[1]["detail"]
        == "balance has no version 99; known: 1. See ./foldlake versions."
    )
    page = client.get("/explain?readModel=balance&key=1&version=99", headers=HTML)
    assert (page.status_code, "balance has no version 99" in page.text) == (422, True)
    assert not job.requests


def test_a_job_that_fails_says_why_and_is_started_again_later(
    client: FlaskClient, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.error = "Kafka is not up."
    job.may_end.set()
    ask(client)
    wait_until(lambda: ask(client)[0] == 422, "the reason", timeout_s=120)
    assert ask(client)[1]["detail"] == "Kafka is not up."

    job.error = ""
    monkeypatch.setattr(module, "FRESH_S", 0.0)
    ask(client)
    monkeypatch.setattr(module, "FRESH_S", 30.0)
    wait_until(lambda: ask(client)[0] == 200, "the explanation", timeout_s=120)


def test_another_sites_page_cannot_start_jobs_in_the_background(client: FlaskClient, job: Job) -> None:
    foreign = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert client.get("/explain?readModel=balance&key=1", headers=foreign).status_code == 403
    assert not job.requests

    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.get("/explain?readModel=balance&key=1", headers=link).status_code == 202
