"""Doubles that are no numbers are strings in every answer, on the node that has the record and on another one."""

import json
import math
from datetime import UTC, datetime
from pathlib import Path

import pytest

from include.kafka.state_record import StateRecord
from include.position import Position
from include.settings import Settings
from query_api.changes.key_change import ChangeEvent, ChangeKind, KeyState
from query_api.http.changes.events import change_frame, event
from tests.unit.query_api.http.stops import Answer, StopsNode, other_node, stops_settings, window_keys

WINDOW = window_keys("a", 40, 0)[0]
STATES = {
    "nan": {"n": 1, "lat": math.nan, "lon": math.inf},
    "low": {"n": 2, "lat": -math.inf, "lon": -0.0},
    WINDOW: {"n": 3, "lat": 1.0, "lon": 2.0},
}
SHOWN = {
    "nan": {"n": 1, "lat": "NaN", "lon": "Infinity"},
    "low": {"n": 2, "lat": "-Infinity", "lon": -0.0},
    WINDOW: {"n": 3, "lat": 1.0, "lon": 2.0},
}
RECORDS = "/api/read-models/stops/records"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return stops_settings(tmp_path)


@pytest.fixture
def node(settings: Settings) -> StopsNode:
    node = StopsNode(settings)
    node.store("stops", 1, STATES)
    node.publish()
    return node


def no_constants(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def parsed(text: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(text, parse_constant=no_constants)
    return found


def test_lookups_and_records_have_strings(node: StopsNode) -> None:
    assert node.client.get("/api/stops.get?stopId=nan").text == '{"n":1,"lat":"NaN"}'
    assert parsed(node.client.get(f"{RECORDS}/low").text)["state"] == SHOWN["low"]


def test_listings_have_strings(node: StopsNode) -> None:
    whole = json.loads(node.client.get(RECORDS).text, parse_constant=no_constants)
    parts = [
        record
        for partition in (0, 1)
        for record in json.loads(
            node.client.get(f"{RECORDS}?partition={partition}").text, parse_constant=no_constants
        )["records"]
    ]

    for records in (whole["records"], parts):
        assert {record["key"]: record["state"] for record in records} == SHOWN


def test_a_place_that_is_no_number_is_in_no_box(node: StopsNode) -> None:
    for box in ("-90,-180,90,180", "-90,170,90,-170"):
        found = json.loads(node.client.get(f"{RECORDS}?within={box}").text)["records"]
        assert {record["key"] for record in found} <= {WINDOW}


def test_the_strings_of_another_node_are_passed_on(settings: Settings) -> None:
    records = [{"key": "far", "state": SHOWN["nan"], "event_count": 1}]

    def answer(target: str) -> Answer:
        if "?partition=" in target:
            return 200, {}, json.dumps({"records": records, "next": None, "position": 1})
        return 200, {}, json.dumps(records[0])

    with other_node(answer) as url:
        node = StopsNode(settings, url)
        node.store("stops", 1, {})
        node.publish()
        listed = json.loads(node.client.get(RECORDS).text, parse_constant=no_constants)["records"]

    assert [record["state"] for record in listed] == [SHOWN["nan"]]


def test_streams_of_changes_have_strings() -> None:
    record = StateRecord(dict(STATES["nan"]), Position(0, 1, 1), datetime(2026, 1, 2, tzinfo=UTC))
    after = KeyState(1, is_removed=False, point=None)

    frame = change_frame(ChangeEvent(0, 0, b"nan", record, 1, None, after), ChangeKind.CHANGED).decode()

    assert parsed(frame.partition("data: ")[2])["state"] == SHOWN["nan"]
    assert event("present", {"lat": math.nan}) == b'event: present\ndata: {"lat":"NaN"}\n\n'
