"""Which differences in logical types between a writer's and a reader's schema are converted, and which are refused."""

import json

import pytest

from include.kafka.logical_types import Comparison, compare, decoded_as
from include.kafka.record_schema import RecordSchema

LONG_TIME = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-millis"}

# An Avro type is JSON of any shape.
AvroType = object


def decimal(precision: int, scale: int) -> dict[str, object]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def schema(avro_type: AvroType, name: str = "value", **field: AvroType) -> RecordSchema:
    fields = [{"name": name, "type": avro_type, **field}]
    return RecordSchema.parse(json.dumps({"type": "record", "name": "Event", "fields": fields}), "test")


def array(items: AvroType) -> dict[str, object]:
    return {"type": "array", "items": items}


def record(**fields: AvroType) -> dict[str, object]:
    return {"type": "record", "name": "Part", "fields": [{"name": n, "type": t} for n, t in fields.items()]}


def record_with_alias(**field: AvroType) -> dict[str, object]:
    [(name, avro_type)] = field.items()
    fields = [{"name": name, "type": avro_type, "aliases": ["cost"]}]
    return {"type": "record", "name": "Part", "fields": fields}


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        (decimal(18, 2), decimal(18, 2)),
        (decimal(18, 2), ["null", decimal(18, 2)]),
        ({"type": "string", "logicalType": "uuid"}, "string"),
        (array(decimal(9, 2)), array(decimal(9, 2))),
        (record(price=decimal(9, 2), weight=decimal(9, 3)), record(price=decimal(9, 2))),
        ({"type": "long", "logicalType": "unheard-of"}, "long"),
    ],
)
def test_equal_types_need_no_conversion(writer: AvroType, reader: AvroType) -> None:
    assert compare(schema(writer), schema(reader)) == Comparison()


@pytest.mark.parametrize(
    ("writer", "reader"),
    [
        (decimal(18, 1), decimal(18, 2)),
        (decimal(30, 0), decimal(18, 2)),
        (MICROS, LONG_TIME),
        (LONG_TIME, MICROS),
    ],
)
def test_exact_conversions_decode_with_the_writers_type(writer: AvroType, reader: AvroType) -> None:
    found = compare(schema(writer), schema(reader))

    assert found == Comparison({"value": writer})
    assert decoded_as(schema(reader), found).parsed()["fields"][0]["type"] == writer


@pytest.mark.parametrize(
    ("writer", "reader", "problem"),
    [
        (decimal(18, 4), decimal(18, 2), "value is decimal(18,4), not decimal(18,2)"),
        ("bytes", decimal(18, 2), "value is a plain value, not decimal(18,2)"),
        (LONG_TIME, "long", "value is timestamp-millis, not a plain value"),
        (LOCAL, LONG_TIME, "value is local-timestamp-millis, not timestamp-millis"),
        (array(decimal(9, 1)), array(decimal(9, 2)), "value[] is decimal(9,1), not decimal(9,2)"),
        (decimal(9, 1), [decimal(9, 2), "string"], "value|bytes is decimal(9,1), not decimal(9,2)"),
        ([decimal(9, 1), "string"], decimal(9, 2), "value is decimal(9,1), not decimal(9,2)"),
        (
            array(record(cost=decimal(9, 1))),
            array(record_with_alias(price=decimal(9, 2))),
            "value[].price is decimal(9,1), not decimal(9,2)",
        ),
        (
            record(price=MICROS),
            record(price=LONG_TIME),
            "value.price is timestamp-micros, not timestamp-millis",
        ),
    ],
)
def test_other_differences_are_named(writer: AvroType, reader: AvroType, problem: str) -> None:
    assert compare(schema(writer), schema(reader)) == Comparison(problem=problem)


def test_field_is_found_under_the_readers_alias() -> None:
    reader = schema(decimal(18, 2), "amount", aliases=["value"])

    assert compare(schema(decimal(18, 4)), reader).problem == "amount is decimal(18,4), not decimal(18,2)"


def test_nullable_field_keeps_null() -> None:
    reader = schema(["null", decimal(18, 2)])

    decoded = decoded_as(reader, compare(schema(["null", decimal(16, 1)]), reader))

    assert decoded.parsed()["fields"][0]["type"] == ["null", decimal(16, 1)]


def test_field_that_the_writer_lacks_is_the_readers() -> None:
    assert compare(schema("string", "other"), schema(decimal(18, 2), default="")) == Comparison()


@pytest.mark.parametrize(
    ("avro_type", "decoded"),
    [
        ({"type": "long", "logicalType": "time-micros"}, "long"),
        ({"type": "long", "logicalType": "timestamp-nanos"}, "long"),
        ({"type": "string", "logicalType": "uuid"}, "string"),
        ({"type": "int", "spark.sql.catalyst.type": "interval month"}, "int"),
        ({"type": "long", "logicalType": "custom-decimal", "precision": 9, "scale": 2}, "long"),
        (["int", LONG_TIME], ["int", "long"]),
        (array(LONG_TIME), array(LONG_TIME)),
        ({"type": "string", "logicalType": "date"}, "string"),
    ],
    ids=str,
)
def test_logical_types_that_spark_reads_otherwise_in_another_version_are_not_decoded(
    avro_type: AvroType, decoded: AvroType
) -> None:
    assert decoded_as(schema(avro_type), Comparison()).parsed()["fields"][0]["type"] == decoded


def test_named_type_of_the_writer_is_written_out_once() -> None:
    def event(scale: int, name: str) -> RecordSchema:
        first = {
            "type": "fixed",
            "name": name,
            "size": 8,
            "logicalType": "decimal",
            "precision": 9,
            "scale": scale,
        }
        fields = [{"name": "a", "type": first}, {"name": "b", "type": ["null", name]}]
        return RecordSchema.parse(json.dumps({"type": "record", "name": "Event", "fields": fields}), "test")

    writer, reader = event(1, "Theirs"), event(2, "Ours")

    first, second = decoded_as(reader, compare(writer, reader)).parsed()["fields"]

    assert (first["type"]["name"], first["type"]["scale"]) == ("Theirs", 1)
    assert second["type"] == ["null", "Theirs"]


def test_aliases_that_name_two_fields_alike_are_a_problem_of_the_writer() -> None:
    fields = [{"name": "price", "type": "int"}, {"name": "cost", "type": "int"}]
    writer = RecordSchema.parse(json.dumps({"type": "record", "name": "Event", "fields": fields}), "test")

    found = compare(writer, schema("int", "price", aliases=["cost"]))

    assert found.problem is not None
    assert found.problem.startswith("Aliases give one name to several fields of Event")
