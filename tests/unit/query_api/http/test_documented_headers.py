"""Each path of a node is documented, and its response has the headers that docs/api.md promises."""

import re
from pathlib import Path

import pytest
from werkzeug.test import TestResponse

from include.settings import CHECKOUT, Settings
from query_api.http.json_text import dumps
from query_api.http.request_checks import AllowedHosts
from tests.unit.query_api.http.stops import Answer, StopsNode, other_node, stops_settings

PAGE = (CHECKOUT / "docs" / "api.md").read_text(encoding="utf-8")
REFERENCE = (CHECKOUT / "docs" / "reference" / "http.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (.+) \| ((?:yes|no)(?: \| (?:yes|no)){4}) \|$", re.MULTILINE)
NAMES = ("Version", "Position", "Node", "Role", "As-Of")
HEADERS = [f"Foldlake-{name}" for name in NAMES]
RECORDS = "/api/read-models/stops/records"
# The row of the page -> a request for each response that it describes, with its status.
REQUESTS = {
    "a named lookup, also with a join; a record": [
        ("/api/stops.get?stopId=a", 200),
        ("/api/stops.get?stopId=a&minOffset=0", 200),
        ("/api/stops.getWithFee?stopId=a", 200),
        (f"{RECORDS}/a", 200),
        (f"{RECORDS}/a?version=1", 200),
    ],
    "a window lookup": [("/api/stops.getWindows?stopId=a&from=1970-01-01&to=1970-01-01T00:00:04", 200)],
    "all records of a read model, also in a box": [(RECORDS, 200), (f"{RECORDS}?within=-1,-1,1,1", 200)],
    "the listing of a partition, also in a box": [
        (f"{RECORDS}?partition=0", 200),
        (f"{RECORDS}?partition=0&within=-1,-1,1,1", 200),
    ],
    "a stream of changes": [("HEAD /api/read-models/stops/changes?snapshot=true", 200)],
    "`unknown-key` and `not-up-to-bound`": [
        ("/api/stops.get?stopId=nobody", 404),
        ("/api/stops.getWithFee?stopId=nobody", 404),
        (f"{RECORDS}/nobody", 404),
        ("/api/stops.get?stopId=a&minOffset=1", 503),
    ],
    "`not-owner`, `not-ready` and `unknown-model`": [
        ("/api/read-models/nothing/records/a", 404),
        ("/api/read-models/nothing/records", 404),
        ("/api/read-models/nothing/changes", 404),
        ("HEAD /api/read-models/nothing/changes", 404),
        (f"{RECORDS}?partition=7", 421),
    ],
    "anything else": [
        ("/api/read-models", 200),
        ("/api/partitions", 200),
        ("/api/status?sections=nodes", 200),
        ("/", 200),
        ("/map/stops", 200),
        ("/healthz", 200),
        ("/readyz", 200),
        ("/metrics", 200),
        ("/metrics/status", 200),
        ("/explain", 400),
        ("/reports/quality/", 200),
        ("/reports/changes/", 200),
        ("/api/stops.get", 400),
        (f"{RECORDS}?limit=0", 400),
        ("POST /api/stops.get?stopId=a", 405),
        ("/api/nothing", 404),
    ],
}


def documented() -> dict[str, list[bool]]:
    return {label: [mark == "yes" for mark in marks.split(" | ")] for label, marks in ROW.findall(PAGE)}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> StopsNode:
    settings = stops_settings(tmp_path_factory.mktemp("node"))
    node = StopsNode(settings)
    node.store("stops", 1, {"a": {"n": 1, "lat": 0.5, "lon": 0.5}})
    node.store("fees", 1, {})
    return node


def test_the_page_describes_these_responses() -> None:
    assert documented().keys() == REQUESTS.keys()


@pytest.mark.parametrize(
    ("label", "request_line", "status"),
    [(label, line, status) for label, lines in REQUESTS.items() for line, status in lines],
)
def test_a_response_has_the_headers_that_the_page_promises(
    node: StopsNode,
    label: str,
    request_line: str,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    node.publish()
    method, _, path = request_line.rpartition(" ")

    answer = node.client.open(path, method=method or "GET", headers={"Host": "localhost"})

    assert answer.status_code == status
    assert [name in answer.headers for name in HEADERS] == documented()[label]
    assert ("Foldlake-Lag-Ms" in answer.headers) == ("Foldlake-As-Of" in answer.headers)
    # Nothing that can change is kept by a cache; pages are validated each time.
    assert answer.headers["Cache-Control"] in {"no-store", "no-cache"}
    assert len(answer.headers.getlist("Cache-Control")) == 1


def test_every_path_of_the_node_is_on_a_page(node: StopsNode) -> None:
    operations = re.findall(r"^### (?:GET|POST) (\S+)$", REFERENCE, re.MULTILINE)
    listed = {re.sub(r"{[^}]*}", "<>", path) for path in operations}
    # Pages for people are no operations of the contract.
    listed |= {
        re.sub(r"<[^>]*>", "<>", path) for path in re.findall(r"^\| `(/[^`]*)` \|", PAGE, re.MULTILINE)
    }
    own = {re.sub(r"<[^>]*>", "<>", str(rule)) for rule in node.app.url_map.iter_rules()}
    # Declared paths have a dot. Pages load their own files; a report is below its index.
    files = re.compile(r"/(status|page|map|changes|docs)-files/|/reports/(quality|changes)/.")

    assert {path for path in own if "." not in path and not files.match(path)} - listed == set()


def joined(settings: Settings, confirmed_s_ago: dict[str, float]) -> TestResponse:
    node = StopsNode(settings, confirmed_s_ago=confirmed_s_ago)
    node.store("stops", 1, {"a": {"n": 1, "lat": 0.5, "lon": 0.5}})
    node.store("fees", 1, {"a": {"fee": 3}})
    node.publish()
    return node.client.get("/api/stops.getWithFee?stopId=a")


@pytest.mark.parametrize("older", ["stops", "fees"])
def test_a_joined_answer_is_as_old_as_the_older_of_both_records(tmp_path: Path, older: str) -> None:
    answer = joined(stops_settings(tmp_path), {older: 4.0})

    assert answer.text == '{"n":1,"fee":3}'
    assert 4000 <= int(answer.headers["Foldlake-Lag-Ms"]) < 60_000
    assert answer.headers["Foldlake-Version"] == "1"


def test_all_records_are_as_old_as_the_oldest_partition(tmp_path: Path) -> None:
    as_of = "2026-03-02T08:00:00.000+00:00"

    def answer(_: str) -> Answer:
        page = dumps({"records": [], "next": None, "position": 1})
        return 200, {"Foldlake-As-Of": as_of, "Foldlake-Lag-Ms": "9000"}, page

    with other_node(answer) as url:
        node = StopsNode(stops_settings(tmp_path), url)
        node.store("stops", 1, {})
        node.publish()
        listed = node.client.get(RECORDS)

    assert (listed.headers["Foldlake-As-Of"], listed.headers["Foldlake-Lag-Ms"]) == (as_of, "9000")


def test_an_error_page_has_one_cache_control(node: StopsNode) -> None:
    node.publish()

    page = node.client.get("/api/nothing", headers={"Accept": "text/html", "Host": "localhost"})

    assert page.mimetype == "text/html"
    assert page.headers.getlist("Cache-Control") == ["no-cache"]


def test_a_node_accepts_no_host_that_a_target_names(node: StopsNode) -> None:
    # The server hands a foreign authority on as Host if the request has no such header.
    hosts = AllowedHosts(node.settings)

    assert not hosts.accepts("user@127.0.0.1:5051")
    assert not hosts.accepts("127.0.0.1,other.host")
