"""Extreme values in requests are refused with the reason, or ignored, before anything large is made of them."""

import json
import time
import tracemalloc
from collections.abc import Mapping

import pytest
from werkzeug.test import TestResponse

from include.settings import Settings
from query_api.http.changes import change_routes
from query_api.http.pages.pages import wants_page
from tests.unit.query_api.http.parcels import Node, parcels_settings

RECORDS = "/api/read-models/parcels/records"
CHANGES = "/api/read-models/parcels/changes"
DIGITS = "9" * 5000
LONG = "x" * 60_000
MAX_PEAK_BYTES = 4_000_000
MAX_CPU_S = 2.0
REFUSED = {400, 404, 421}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Node:
    given = parcels_settings(tmp_path_factory.mktemp("node"))
    return Node(
        Settings.of(home=given.home, read_models_dir=given.read_models_dir, systems=("logs", "orders"))
    )


@pytest.fixture
def node(running: Node, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr(change_routes, "READY_TIMEOUT_S", 0.0)
    running.beat()
    return running


def cheap(node: Node, path: str, query: Mapping[str, str] | None = None, **environ: str) -> TestResponse:
    """Send a request, and assert what it costs."""
    tracemalloc.start()
    started_s = time.thread_time()
    try:
        answer = node.fast.get(path, query_string=query, environ_overrides=environ)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (peak < MAX_PEAK_BYTES, time.thread_time() - started_s < MAX_CPU_S) == (True, True)
    return answer


NUMBERS = ("", DIGITS, "-1", "1e999999999", "nan", "inf", "\u0661", "0x10", "1_0", "+1", " 1", "1.5", LONG)


@pytest.mark.parametrize(
    ("path", "name", "more"),
    [
        (RECORDS, "partition", {}),
        (RECORDS, "limit", {}),
        (RECORDS, "version", {}),
        (RECORDS, "cursor", {}),
        (RECORDS, "within", {}),
        (RECORDS, "sample", {"partition": "0"}),
        (f"{RECORDS}/A", "version", {}),
        (f"{RECORDS}/A", "minOffset", {}),
        ("/api/read-models/order-location/records", "within", {}),
        ("/api/parcels.getPlace", "minOffset", {"parcelId": "a"}),
        (CHANGES, "version", {}),
        (CHANGES, "after", {}),
        (CHANGES, "snapshot", {}),
        (CHANGES, "within", {}),
        ("/explain", "version", {"readModel": "balance", "key": "a"}),
        ("/api/browsers.getWindows", "from", {"browserHash": "a", "to": "2026-01-01"}),
    ],
)
def test_what_is_no_number_is_refused(node: Node, path: str, name: str, more: Mapping[str, str]) -> None:
    for text in NUMBERS:
        if not text and name in {"minOffset", "after", "version"}:
            continue  # as if it were not given, or refused, depending on the path
        answer = cheap(node, path, {**more, name: text})

        assert answer.status_code in REFUSED, (text[:20], answer.text)
        assert json.loads(answer.text)["type"] != "urn:foldlake:problem:not-found"


@pytest.mark.parametrize(
    "box",
    ["nan,nan,nan,nan", "1e5,0,1,1", "0,0,0,inf", "91,0,92,1", "0,0,0,181", "1,0,0,1", "0,0,1", "0," * 30_000, "0.0,0,1," + "1" * 60_000],
)  # fmt: skip
def test_what_is_no_box_is_refused(node: Node, box: str) -> None:
    for path in ("/api/read-models/order-location/records", "/api/read-models/order-location/changes"):
        answer = cheap(node, path, {"within": box})

        assert (answer.status_code, json.loads(answer.text)["type"]) == (
            400,
            "urn:foldlake:problem:invalid-within",
        )


@pytest.mark.parametrize(
    "position",
    [f"{DIGITS}.1.1", f"1.{DIGITS}.1", f"1.1.{DIGITS}", "1.1." + "1-" * 30_000, "1.1." + "-" * 30_000],
)
def test_what_is_no_position_of_a_stream_is_refused(node: Node, position: str) -> None:
    given = cheap(node, CHANGES, {"after": position})
    sent = cheap(node, CHANGES, HTTP_LAST_EVENT_ID=position)

    assert [json.loads(one.text)["type"] for one in (given, sent)] == [
        "urn:foldlake:problem:invalid-position"
    ] * 2
    assert max(len(given.text), len(sent.text)) < 1000


@pytest.mark.parametrize(
    "served", [f"{DIGITS}/1", f"1/{DIGITS}", "\u0661/1", "1", "/", "1/9223372036854775808", LONG]
)
def test_what_is_no_offset_of_another_node_is_ignored(node: Node, served: str) -> None:
    answer = cheap(
        node, "/api/parcels.getPlace?parcelId=A%201/2", HTTP_FOLDLAKE_HOP="any", HTTP_FOLDLAKE_SERVED=served
    )

    assert answer.status_code == 200


@pytest.mark.parametrize("name", ["If-Modified-Since", "If-Unmodified-Since", "If-Range"])
@pytest.mark.parametrize("year", ["99999999999999999999", DIGITS, "0", "x"])
def test_a_date_of_any_year_is_ignored(node: Node, name: str, year: str) -> None:
    headers = {name: f"Mon, 01 Jan {year} 00:00:00 GMT"}

    assert node.fast.get("/page-files/page.css", headers=headers).status_code == 200


def test_a_list_of_many_media_types_is_not_sorted(node: Node) -> None:
    accept = "text/html," + "a/b," * 15_000

    for path in ("/api/nothing", "/explain", "/api/parcels.getPlace?parcelId=nobody"):
        answer = cheap(node, path, HTTP_ACCEPT=accept)
        assert answer.headers["Content-Type"] == "application/problem+json"
    assert wants_page("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8")


def test_unknown_parameters_are_not_repeated_in_full(node: Node) -> None:
    answer = cheap(node, f"{RECORDS}?{LONG}=1")

    assert (answer.status_code, len(answer.text) < 1000) == (400, True)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/parcels.weigh", "[" * 16_000),
        ("/api/parcels.weigh", '{"a":' * 3000),
        ("/api/parcels.weigh", '{"parcelId":"a","grams":' + "9" * 16_000 + "}"),
        ("/api/parcels.weigh", '{"parcelId":"a","grams":1e999999999}'),
        ("/api/parcels.weigh", '{"parcelId":"\\ud800","grams":1}'),
        ("/api/parcels.weigh", '{"\\ud800":1}'),
        ("/api/parcels.weigh", "{" + ",".join(f'"{number}":1' for number in range(1500)) + "}"),
        ("/api/balance.addFunds", '{"customerId":"a","amount":"1e999999999"}'),
        ("/api/balance.addFunds", '{"customerId":"a","amount":' + DIGITS + "}"),
        ("/api/balance.addFunds", '{"customerId":"a","amount":"0.' + "0" * 5000 + '1"}'),
        ("/api/balance.addFunds", '{"customerId":"a","amount":NaN}'),
        ("/api/balance.addFunds", '{"customerId":"a","amount":"Infinity"}'),
    ],
)
def test_an_extreme_body_is_refused(node: Node, path: str, body: str) -> None:
    answer = node.fast.post(path, data=body, content_type="application/json")

    assert answer.status_code == 400
    assert "Nothing was written" in json.loads(answer.text)["detail"]
