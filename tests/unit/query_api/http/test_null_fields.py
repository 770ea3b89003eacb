"""A nullable field of a state is null in every answer of a node, and an item without a location is in no box."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.query_api.http.stops import STOPS, StopsNode, stops_settings

STATES: dict[str, dict[str, Any]] = {
    "unknown": {"n": 1, "lat": None, "lon": None},
    "half": {"n": 2, "lat": 3.0, "lon": None},
    "known": {"n": 3, "lat": 1.0, "lon": 2.0},
}
RECORDS = "/api/read-models/stops/records"


@pytest.fixture
def node(tmp_path: Path) -> StopsNode:
    settings = stops_settings(tmp_path)
    nullable = STOPS.replace('"double"', '["null", "double"]')
    (tmp_path / "models" / "stops.py").write_text(nullable)
    node = StopsNode(settings)
    node.store("stops", 1, STATES)
    node.publish()
    return node


def test_a_null_field_is_null_in_lookups_records_and_listings(node: StopsNode) -> None:
    assert json.loads(node.client.get("/api/stops.get?stopId=unknown").text) == {"n": 1, "lat": None}
    assert json.loads(node.client.get(f"{RECORDS}/half").text)["state"] == STATES["half"]
    listed = json.loads(node.client.get(RECORDS).text)["records"]
    assert {record["key"]: record["state"] for record in listed} == STATES


def test_an_item_without_a_location_is_in_no_box(node: StopsNode) -> None:
    found = json.loads(node.client.get(f"{RECORDS}?within=-90,-180,90,180").text)["records"]

    assert [record["key"] for record in found] == ["known"]
