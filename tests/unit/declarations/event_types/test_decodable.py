"""An event schema with a field that cannot be decoded is refused when it is loaded, with the field's name."""

import json
from pathlib import Path
from typing import Any

import pytest

from include.declarations.event_types.event_schemas import event_schema
from include.errors import SchemaError

TIME = {"name": "occurredOn", "type": {"type": "long", "logicalType": "timestamp-millis"}}
TREE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
PART = {"type": "record", "name": "Part", "fields": [{"name": "price", "type": "int", "default": "x"}]}
ENUM = {"type": "enum", "name": "Colour", "symbols": ["RED"]}


def loaded(folder: Path, **field: Any) -> None:  # noqa: ANN401 - a field as JSON
    schema = {"type": "record", "name": "Painted", "fields": [TIME, {"name": "it", **field}]}
    (folder / "Painted.avsc").write_text(json.dumps(schema))
    event_schema("Painted", (folder,))


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ({"type": TREE}, r"^Painted\.it\.next is a Node inside a Node"),
        ({"type": {"type": "array", "items": TREE}}, r"^Painted\.it\[\]\.next is a Node inside a Node"),
        (
            {"type": {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}},
            r"^Painted\.it is decimal\(64,2\): a decimal has at most 38 digits",
        ),
        ({"type": ["null"]}, r"^Painted\.it is a union of null: "),
        ({"type": [ENUM, "null"], "default": None}, r"^The default of Painted\.it cannot be used"),
        ({"type": {"type": "map", "values": PART}}, r"Painted"),
    ],
    ids=str,
)
def test_field_that_cannot_be_decoded_is_refused(tmp_path: Path, field: dict[str, Any], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        loaded(tmp_path, **field)


@pytest.mark.parametrize(
    "avro_type",
    [
        "null",
        {"type": "string", "logicalType": "uuid"},
        {"type": "long", "logicalType": "time-micros"},
        ["null", "int", "string", ENUM],
        {"type": "array", "items": ["null", "string"]},
    ],
    ids=str,
)
def test_other_field_is_accepted(tmp_path: Path, avro_type: object) -> None:
    loaded(tmp_path, type=avro_type)
