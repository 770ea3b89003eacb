"""With `decimals=string`, exact decimals are strings, wherever the record is, and nothing else changes."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pytest

from include.kafka.state_record import StateRecord
from include.position import Position
from include.settings import Settings
from query_api.changes.key_change import ChangeEvent, ChangeKind, KeyState
from query_api.http.changes.events import change_frame
from query_api.http.json_text import RecordForm, dumps, raw_json, with_text_decimals
from query_api.lookup import lookups
from tests.unit.query_api.http.parcels import Node, parcels_settings
from tests.unit.query_api.http.stops import Answer, StopsNode, other_node, stops_settings, window_keys

RECORDS = "/api/read-models/parcels/records"
PLACE = "/api/parcels.getPlace?parcelId=A%201/2"
AMOUNT = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Node:
    return Node(parcels_settings(tmp_path_factory.mktemp("node")))


def state_of(answer: dict[str, Any]) -> dict[str, Any]:
    state: dict[str, Any] = (answer["records"][0] if "records" in answer else answer)["state"]
    return state


def read(node: Node, target: str) -> dict[str, Any]:
    node.beat()
    answer = node.fast.get(target)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = json.loads(answer.text, parse_float=Decimal)
    return found


def test_a_lookup_returns_decimals_as_strings(node: Node) -> None:
    numbers, strings = (read(node, f"{PLACE}&decimals={form}") for form in ("number", "string"))

    assert numbers == read(node, PLACE)
    assert (numbers["fee"], strings["fee"]) == (Decimal("-1.250"), "-1.250")
    assert {**strings, "fee": None} == {**numbers, "fee": None}


@pytest.mark.parametrize("target", [f"{RECORDS}?key=A%201/2", f"{RECORDS}?limit=1", f"{RECORDS}?partition=0"])
def test_records_have_decimals_as_strings(node: Node, target: str) -> None:
    numbers, strings = read(node, target), read(node, f"{target}&decimals=string")

    assert (state_of(numbers)["fee"], state_of(strings)["fee"]) == (Decimal("-1.250"), "-1.250")
    assert {**state_of(strings), "fee": None} == {**state_of(numbers), "fee": None}


@pytest.mark.parametrize(
    "target",
    [PLACE, f"{RECORDS}?key=a", f"{RECORDS}?partition=0", "/api/read-models/parcels/changes?snapshot=true"],
)
@pytest.mark.parametrize("form", ["", "float", "STRING"])
def test_another_form_is_refused(node: Node, target: str, form: str) -> None:
    answer = node.fast.get(f"{target}&decimals={form}")

    assert (answer.status_code, json.loads(answer.text)["type"]) == (
        400,
        "urn:foldlake:problem:invalid-decimals",
    )


@pytest.mark.parametrize(
    ("avro", "value"),
    [
        (AMOUNT, Decimal("-123456789012345678.90")),
        (["null", AMOUNT], Decimal("0.05")),
        ({"type": "array", "items": AMOUNT}, [Decimal("1.00"), Decimal("2.50")]),
        ({"type": "map", "values": ["null", AMOUNT]}, {"a": Decimal("1.00"), "b": None}),
        (
            {
                "type": "record",
                "name": "R",
                "fields": [{"name": "a", "type": AMOUNT}, {"name": "b", "type": "double"}],
            },
            {"a": Decimal("1.10"), "b": 1.5},
        ),
    ],
)
def test_the_fast_form_equals_the_general_one(avro: object, value: object) -> None:
    """`raw_json` renders values without their logical types; the general form renders decoded ones."""
    schema = {"type": "record", "name": "T", "fields": [{"name": "v", "type": avro}]}
    plain = json.loads(json.dumps(schema).replace(', "logicalType": "decimal"', ""))
    encoded = BytesIO()
    fastavro.schemaless_writer(encoded, fastavro.parse_schema(schema), {"v": value})
    raw: Any = fastavro.schemaless_reader(BytesIO(encoded.getvalue()), fastavro.parse_schema(plain), None)

    assert raw_json(avro, text_decimals=True)(raw["v"]) == dumps(with_text_decimals(value))
    assert raw_json(avro)(raw["v"]) == dumps(value)


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(lookups, "ANSWER_TIMEOUT_S", 60.0)
    return stops_settings(tmp_path)


def test_another_node_is_asked_for_the_same_form(settings: Settings) -> None:
    asked: list[str] = []

    def answer(target: str) -> Answer:
        asked.append(target)
        return 200, {}, json.dumps({"state": {"n": 1, "lat": 0.5, "lon": 0.0}, "event_count": 1})

    with other_node(answer) as url:
        node = StopsNode(settings, url)
        node.store("stops", 1, {})
        node.publish()
        (start,) = window_keys("a", 8, 1)[:1]
        since = start.removeprefix("a/")
        range_of_one = f"from={since}&to={since.replace('Z', '.5Z')}"
        found = node.client.get(f"/api/stops.getWindows?stopId=a&{range_of_one}&decimals=string")

    assert json.loads(found.text) == {"windows": [{"n": 1}]}, "a number that is no decimal stays one"
    assert [target.endswith("version=1&decimals=string") for target in asked] == [True]


def test_streams_of_both_forms_share_a_change() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    record = StateRecord({"fee": Decimal("1.50"), "n": 1.5}, Position(0, 7, 1), at)
    change = ChangeEvent(0, 7, b"a", record, 1, None, KeyState(1, is_removed=False, point=None))

    frames = [
        change_frame(change, ChangeKind.CHANGED, RecordForm(text_decimals))
        for text_decimals in (False, True, False, True)
    ]

    assert frames[:2] == frames[2:]
    assert b'"state":{"fee":1.50,"n":1.5}' in frames[0]
    assert b'"state":{"fee":"1.50","n":1.5}' in frames[1]
