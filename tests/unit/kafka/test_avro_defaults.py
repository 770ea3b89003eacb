"""Defaults of every type are encoded as Avro's Java library encodes them, or refused."""

import io
import json
from typing import Any

import fastavro
import pytest

from include.kafka.avro.avro_defaults import encoded_default
from include.kafka.avro.avro_types import avro_type

PART = {
    "type": "record",
    "name": "Part",
    "fields": [{"name": "a", "type": "int", "default": 7}, {"name": "b", "type": "string"}],
}
ENUM = {"type": "enum", "name": "Enum", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "Fixed", "size": 3}


@pytest.mark.parametrize(
    ("definition", "default", "value"),
    [
        ("null", None, None),
        ("boolean", True, True),
        ("int", -5, -5),
        ("long", 2**63 - 1, 2**63 - 1),
        ("float", 1, 1.0),
        ("double", 0.1, 0.1),
        ("string", "ä", "ä"),
        ("bytes", "\u00ff\u0001", b"\xff\x01"),
        (FIXED, "\u00ff\u0001\u0002", b"\xff\x01\x02"),
        (FIXED, "\u00ff", b"\xff\0\0"),
        (ENUM, "B", "B"),
        ({"type": "array", "items": "int"}, [], []),
        ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ({"type": "map", "values": "string"}, {"k": "v"}, {"k": "v"}),
        (PART, {"b": "x"}, {"a": 7, "b": "x"}),
        (["null", "string"], None, None),
        (["null", "string"], "second", "second"),
        (["string", "null"], None, None),
    ],
    ids=str,
)
def test_default_is_read_as_a_written_value(definition: Any, default: Any, value: Any) -> None:  # noqa: ANN401 - JSON
    encoded = encoded_default(avro_type(definition), default)

    parsed = fastavro.parse_schema(json.loads(json.dumps(definition)))
    assert fastavro.schemaless_reader(io.BytesIO(encoded), parsed, None) == value


@pytest.mark.parametrize(
    ("definition", "default"),
    [
        ("int", 1.5),
        ("int", True),
        ("int", 2**31),
        ("int", "1"),
        ("string", None),
        ("boolean", 1),
        ("bytes", 1),
        (ENUM, "C"),
        (ENUM, None),
        ({"type": "array", "items": "int"}, ["1"]),
        (PART, {}),
        (["int", "string"], None),
        # Java takes the first branch that is not simple, whatever the default is.
        ([ENUM, "null"], None),
    ],
    ids=str,
)
def test_default_of_another_type_is_refused(definition: Any, default: Any) -> None:  # noqa: ANN401 - JSON
    with pytest.raises(ValueError, match=r"is no value of|it lacks the field b"):
        encoded_default(avro_type(definition), default)
