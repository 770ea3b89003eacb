"""A writer's schema that cannot be used has a problem, and raises nothing, whatever its text is."""

import json
from typing import Any

import pytest

from include.declarations.event_types.event_schemas import event_schema
from include.kafka.logical_types import Comparison, compare, decoded_as
from include.kafka.record_schema import RecordSchema
from include.kafka.registry.writer_schema import writer_schema
from tests.support.faults.foreign_writers import decimal


def with_field(avro_type: object, **more: object) -> str:
    schema = event_schema("FundsAdded").parsed()
    schema["fields"].append({"name": "extra", "type": avro_type, **more})
    return json.dumps(schema)


def nested(depth: int) -> str:
    """Return an array of arrays."""
    return '{"type":"array","items":' * depth + '"int"' + "}" * depth


UNREADABLE_TEXTS = {
    "nothing": ("", "not JSON"),
    "no JSON": ("{", "not JSON"),
    "a text": ('"string"', 'of type "string", not a record'),
    "a number": ("1", "of type 1, not a record"),
    "null": ("null", "of type null, not a record"),
    "a union": ('["null","string"]', "a union, not a record"),
    "an enum": ('{"type":"enum","name":"FundsAdded","symbols":["a"]}', "not a record"),
    "no name": ('{"type":"record","fields":[]}', "KeyError"),
    "no fields": ('{"type":"record","name":"FundsAdded"}', "KeyError"),
    "a name that is none": ('{"type":"record","name":5,"fields":[]}', "the name 5 is not a text"),
    "deep": (nested(100_000), "RecursionError"),
}
UNUSABLE_FIELDS = {
    "scale over precision": (decimal(4, 9), {}, "decimal scale"),
    "fixed too small": (
        {"type": "fixed", "name": "F", "size": 2, "logicalType": "decimal", "precision": 20, "scale": 2},
        {},
        "doesn't fit",
    ),
    "fixed below zero": ({"type": "fixed", "name": "F", "size": -1}, {}, "-1 bytes"),
    "unknown type": ("shop.Missing", {}, "shop.Missing"),
    "two symbols": ({"type": "enum", "name": "E", "symbols": ["a", "a"]}, {}, "unique"),
    "wrong default": ("long", {"default": 1.5}, "Default value"),
    "two equal branches": (["int", "int"], {}, "two branches of one type"),
    "union in a union": (["null", ["int"]], {}, "directly in a union"),
    "defined twice": (
        [{"type": "enum", "name": "E", "symbols": []}, {"type": "enum", "name": "E", "symbols": []}],
        {},
        "redefined",
    ),
    "name with a hyphen": ({"type": "record", "name": "a-b", "fields": []}, {}, "not a name"),
    "field with a hyphen": (
        {"type": "record", "name": "A", "fields": [{"name": "a-b", "type": "int"}]},
        {},
        "not a name",
    ),
    "two fields": (
        {
            "type": "record",
            "name": "A",
            "fields": [{"name": "a", "type": "int"}, {"name": "a", "type": "int"}],
        },
        {},
        "two fields of one name",
    ),
}


@pytest.mark.parametrize(("text", "problem"), UNREADABLE_TEXTS.values(), ids=UNREADABLE_TEXTS)
def test_schema_that_is_no_record_has_no_name(text: str, problem: str) -> None:
    schema = writer_schema(text)

    assert (schema.name, schema.full_name) == ("", "")
    assert problem in str(schema.problem)


@pytest.mark.parametrize(("avro_type", "more", "problem"), UNUSABLE_FIELDS.values(), ids=UNUSABLE_FIELDS)
def test_record_that_cannot_be_read_is_named_with_the_reason(
    avro_type: Any,  # noqa: ANN401 - an Avro type
    more: dict[str, Any],
    problem: str,
) -> None:
    schema = writer_schema(with_field(avro_type, **more))

    assert schema.name == "FundsAdded"
    assert problem in str(schema.problem)
    assert compare(schema, event_schema("FundsAdded")).problem == schema.problem


@pytest.mark.parametrize("kind", ["PROTOBUF", "JSON"])
def test_schema_of_another_format_has_a_problem(kind: str) -> None:
    assert writer_schema("message P {}", kind).problem == f"the schema is {kind}, not AVRO"


@pytest.mark.parametrize(
    "avro_type",
    [
        ["null", "FundsAdded"],
        {"type": "int", "logicalType": ["date"]},
        {"type": "string", "logicalType": "unheard-of"},
        decimal(64, 2),
        {"type": "bytes", "logicalType": "decimal"},
        {"type": "fixed", "name": "F", "size": 0},
        {"type": "error", "name": "E", "fields": []},
    ],
)
def test_unusual_field_of_no_reader_is_no_problem(avro_type: Any) -> None:  # noqa: ANN401 - an Avro type
    schema = writer_schema(with_field(avro_type))

    assert schema.problem is None
    assert compare(schema, event_schema("FundsAdded")) == Comparison()


@pytest.mark.parametrize("value", [5, {"a": 1}, ["customerId"], {"created": "never", "hours": -1}])
def test_properties_of_a_writer_are_its_own(value: object) -> None:
    text = json.dumps(
        event_schema("FundsAdded").parsed() | {"foldlake.key": value, "foldlake.lifetime": value}
    )

    schema = writer_schema(text)

    assert (schema.key_field, schema.lifetime, schema.problem) == (None, None, None)
    assert compare(schema, event_schema("FundsAdded")).problem is None


@pytest.mark.parametrize("precision", [39, 64, 10**30])
def test_decimal_beyond_spark_is_a_problem_of_a_field_that_is_read(precision: int) -> None:
    schema = event_schema("FundsAdded").parsed()
    schema["fields"][-1]["type"] = decimal(precision, 2)

    problem = compare(writer_schema(json.dumps(schema)), event_schema("FundsAdded")).problem

    assert problem == f"amount is decimal({precision},2): a decimal has at most 38 digits"


def test_named_type_of_two_converted_fields_is_defined_once() -> None:
    def money(precision: int) -> RecordSchema:
        fixed = {
            "type": "fixed",
            "name": "shop.Money",
            "size": 8,
            "logicalType": "decimal",
            "precision": precision,
            "scale": 2,
        }
        fields = [{"name": "a", "type": fixed}, {"name": "b", "type": "shop.Money"}]
        return writer_schema(json.dumps({"type": "record", "name": "R", "fields": fields}))

    comparison = compare(money(12), money(18))

    first, second = (declared["type"] for declared in decoded_as(money(18), comparison).parsed()["fields"])
    assert first["precision"] == 12
    assert second == "shop.Money"


def test_type_in_a_referenced_schema_is_written_out_at_its_first_use() -> None:
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "i", "type": "int"}]}
    outer = {
        "type": "record",
        "name": "Outer",
        "namespace": "shop",
        "fields": [{"name": "inner", "type": inner}],
    }
    fields = [
        {"name": "x", "type": "shop.Inner"},
        {"name": "y", "type": {"type": "array", "items": "shop.Outer"}},
    ]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})

    schema = writer_schema(text, referenced=[json.dumps(outer)])

    assert schema.problem is None
    x, y = (declared["type"] for declared in schema.parsed()["fields"])
    assert x["name"] == "Inner"
    assert y["items"]["fields"][0]["type"] == "shop.Inner"
