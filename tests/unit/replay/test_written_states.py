"""States that cannot be written as their record: Avro lacks a value of a field's type, at any depth."""

import json

import duckdb
import pyarrow as pa
import pytest

from include.kafka.record_schema import RecordSchema
from include.replay.columns import event_struct
from include.replay.fold_sql import unwritten

RECORD = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}


@pytest.mark.parametrize(
    ("definition", "value", "expected"),
    [
        ("string", None, True),
        ("string", "x", False),
        (["null", "string"], None, False),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "A", False),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "B", True),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", False),
        ({"type": "fixed", "name": "F", "size": 2}, b"abc", True),
        ({"type": "array", "items": "int"}, [1, 2], False),
        ({"type": "array", "items": "int"}, [1, None], True),
        ({"type": "array", "items": {"type": "array", "items": "int"}}, [[1], [None]], True),
        ({"type": "map", "values": ["null", "int"]}, [("k", None)], False),
        ({"type": "map", "values": "int"}, [("k", None)], True),
        (RECORD, {"a": 1}, False),
        (RECORD, {"a": None}, True),
        (["null", RECORD], None, False),
        (["null", RECORD], {"a": None}, True),
        (["string", "int"], None, True),
        (["string", "int"], {"member0": "x", "member1": None}, False),
        ({"type": "bytes", "logicalType": "decimal", "precision": 3, "scale": 1}, None, True),
    ],
)
def test_a_state_with_a_value_that_avro_lacks_cannot_be_written(
    definition: object, value: object, expected: bool
) -> None:
    fields = [{"name": "f", "type": definition}, {"name": "other", "type": "int"}]
    text = json.dumps({"type": "record", "name": "State", "fields": fields})
    schema = RecordSchema.parse(text, "test")
    states = pa.table({"state": pa.array([{"f": value, "other": 1}], event_struct(schema))})

    with duckdb.connect() as connection:
        connection.register("states", states)
        found = connection.table("states").select(f"coalesce({unwritten(schema, 'state')}, false)").fetchone()

    assert found == (expected,)
