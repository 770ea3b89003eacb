"""Every Avro type, nullable or not, as a field of a route's output, of an emission's, and of a state."""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql.functions import col, expr, lit, max_by, when

from include.declarations.kinds.emission import Emission
from include.declarations.kinds.flow import Flow
from include.declarations.read_model import StateField
from include.errors import ReadModelError
from include.kafka.record_schema import RecordSchema
from include.kafka.wire_format import HEADER_BYTES
from include.position import POSITION_COLUMNS
from include.read_models.balance.model import READ_MODEL
from spark_jobs.folding.expressions.avro_columns import typed_columns
from spark_jobs.folding.fold_query import changelog_stream
from spark_jobs.routing.keyed_query import KeyedQuery
from spark_jobs.routing.keyed_rules import emission_rule
from spark_jobs.routing.route_query import RouteQuery
from stack.declaration_testing.records import avro_records, schema_ids

EVENTS = ({"customerId": "c", "amount": Decimal("5.00")},)
NOON = datetime(2026, 1, 1, 12, 0, 0, 123_000, tzinfo=UTC)
AT_NOON = "timestamp'2026-01-01 12:00:00.123 UTC'"
PRICE = {
    "type": "record",
    "name": "Price",
    "fields": [
        {"name": "net", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 7}}
    ],
}


def logical(avro_type: str, name: str, **others: int) -> dict[str, Any]:
    return {"type": avro_type, "logicalType": name, **others}


DECIMAL = logical("bytes", "decimal", precision=9, scale=7)
# Avro type, the column in SQL, and the value that is read back.
TYPES: dict[str, tuple[Any, str, Any]] = {
    "boolean": ("boolean", "true", True),
    "int": ("int", "7", 7),
    "int_of_long": ("int", "7L", 7),
    "int_of_decimal": ("int", "cast(7 as decimal(20, 0))", 7),
    "int_of_short": ("int", "7S", 7),
    "long": ("long", "7L", 7),
    "long_of_int": ("long", "7", 7),
    "float": ("float", "cast(0.5 as float)", 0.5),
    "float_of_double": ("float", "0.5D", 0.5),
    "double": ("double", "0.5D", 0.5),
    "double_of_decimal": ("double", "0.5", 0.5),
    "double_of_long": ("double", "7L", 7.0),
    "string": ("string", "'a'", "a"),
    "uuid": (
        logical("string", "uuid"),
        "'6ba7b810-9dad-11d1-80b4-00c04fd430c8'",
        UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
    ),
    "enum": ({"type": "enum", "name": "Color", "symbols": ["RED", "GREEN"]}, "'GREEN'", "GREEN"),
    "bytes": ("bytes", "X'0102'", b"\x01\x02"),
    "fixed": ({"type": "fixed", "name": "Two", "size": 2}, "X'0102'", b"\x01\x02"),
    "duration": (
        {"type": "fixed", "name": "Span", "size": 12, "logicalType": "duration"},
        "X'010000000200000003000000'",
        b"\1\0\0\0\2\0\0\0\3\0\0\0",
    ),
    "decimal": (DECIMAL, "1.5", Decimal("1.5000000")),
    "decimal_of_int": (DECIMAL, "2", Decimal("2.0000000")),
    "decimal_of_digits": (DECIMAL, "cast(1 as decimal(38, 0)) / 3", Decimal("0.3333330")),
    "decimal_fixed": (
        {"type": "fixed", "name": "Fixed", "size": 8, "logicalType": "decimal", "precision": 9, "scale": 2},
        "1.5",
        Decimal("1.50"),
    ),
    "date": (logical("int", "date"), "date'2026-01-01'", date(2026, 1, 1)),
    "time_millis": (logical("int", "time-millis"), "1000", time(0, 0, 1)),
    "time_micros": (logical("long", "time-micros"), "1000000L", time(0, 0, 1)),
    "timestamp_millis": (logical("long", "timestamp-millis"), AT_NOON, NOON),
    "timestamp_micros": (logical("long", "timestamp-micros"), AT_NOON, NOON),
    "timestamp_of_number": (logical("long", "timestamp-millis"), f"unix_millis({AT_NOON})", NOON),
    "timestamp_nanos": (logical("long", "timestamp-nanos"), "7L", 7),
    "long_of_timestamp": ("long", AT_NOON, round(NOON.timestamp() * 1000)),
    "local_millis": (
        logical("long", "local-timestamp-millis"),
        "timestamp_ntz'2026-01-01 12:00:00.123'",
        NOON.replace(tzinfo=None),
    ),
    "local_micros": (
        logical("long", "local-timestamp-micros"),
        "timestamp_ntz'2026-01-01 12:00:00.123'",
        NOON.replace(tzinfo=None),
    ),
    "array": ({"type": "array", "items": "string"}, "array('a')", ["a"]),
    "array_of_decimals": ({"type": "array", "items": DECIMAL}, "array(1.5, 2)", [Decimal("1.5"), Decimal(2)]),
    "array_of_nullable": (
        {"type": "array", "items": ["null", DECIMAL]},
        "array(1.5, null)",
        [Decimal("1.5"), None],
    ),
    "map_of_decimals": ({"type": "map", "values": DECIMAL}, "map('a', 1.5)", {"a": Decimal("1.5")}),
    "record": (PRICE, "named_struct('net', 1.5)", {"net": Decimal("1.5")}),
    "records": (
        {"type": "array", "items": PRICE | {"name": "Line"}},
        "array(named_struct('net', 1.5))",
        [{"net": Decimal("1.5")}],
    ),
    "union": (["string", DECIMAL], "named_struct('member0', null, 'member1', 1.5)", Decimal("1.5")),
    "int_or_long": (["int", "long"], "7L", 7),
}


def reference(avro_type: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    """Return a type with the names of the named types that it contains: a schema defines each of them once."""
    if isinstance(avro_type, list):
        return [reference(branch) for branch in avro_type]
    if not isinstance(avro_type, dict):
        return avro_type
    if "name" in avro_type:
        return avro_type["name"]
    return {
        key: reference(value) if key in {"items", "values"} else value for key, value in avro_type.items()
    }


def or_null(avro_type: Any) -> list[Any]:  # noqa: ANN401 - JSON of any shape
    found = reference(avro_type)
    return ["null", *(found if isinstance(found, list) else [found])]


FIELDS = {
    **TYPES,
    **{f"{name}_or_null": (or_null(kind), sql, value) for name, (kind, sql, value) in TYPES.items()},
    **{f"null_{name}": (or_null(kind), "null", None) for name, (kind, *_) in TYPES.items()},
}


def record_schema(fields: Mapping[str, Any], key: str) -> RecordSchema:
    declared = [{"name": name, "type": kind} for name, kind in fields.items()]
    return RecordSchema.parse(
        json.dumps({"type": "record", "name": "Output", "fields": declared, "foldlake.key": key}), "a test"
    )


def column(sql: str) -> Column:
    """Return a column that Spark cannot compute before it reads the events."""
    return when(col("offset") >= lit(0), expr(sql))


OUTPUT = record_schema({"key": "string"} | {name: kind for name, (kind, *_) in FIELDS.items()}, "key")
STATE = tuple(StateField(name, kind) for name, (kind, *_) in FIELDS.items())


def output_fields() -> dict[str, Column]:
    return {"key": col("customerId"), **{name: column(sql) for name, (_, sql, _) in FIELDS.items()}}


def by_route(spark: SparkSession) -> tuple[bytes, RecordSchema]:
    route = Flow("route", "types", "balance", ("FundsAdded",), "types", "Output", output_fields)
    # A cached property: the value stands in the instance.
    route.__dict__["output_schema"] = OUTPUT
    source = avro_records(spark, route.event_schemas, EVENTS)
    (row,) = RouteQuery(route, 1, 1, 1, b"key", {}).records(source, schema_ids(route.event_schemas)).collect()
    return bytes(row.value), OUTPUT


def by_emission(spark: SparkSession) -> tuple[bytes, RecordSchema]:
    emission = Emission("types", "balance", "types", "Output", lambda _revision: output_fields())
    emission.__dict__["output_schema"] = OUTPUT
    model = replace(READ_MODEL, event_types=("FundsAdded",))
    source = avro_records(spark, model.event_schemas, EVENTS)
    query = KeyedQuery(emission_rule(emission, model, 1), 1, 1, 1, 1, b"key", {})
    (row,) = query.records(source, schema_ids(model.event_schemas)).collect()
    return bytes(row.value), OUTPUT


def by_fold(spark: SparkSession) -> tuple[bytes, RecordSchema]:
    def fold() -> dict[str, Column]:
        return {name: max_by(column(sql), col("offset")) for name, (_, sql, _) in FIELDS.items()}

    model = replace(READ_MODEL, event_types=("FundsAdded",), state=STATE, folds={1: fold}, merges={})
    source = avro_records(spark, model.event_schemas, EVENTS)
    (row,) = changelog_stream(source, model, 1, schema_ids(model.event_schemas), 1, 1).collect()
    return bytes(row.value), model.state_schema_of(1)


WRITERS: dict[str, Callable[[SparkSession], tuple[bytes, RecordSchema]]] = {
    "route": by_route,
    "emission": by_emission,
    "state": by_fold,
}


@pytest.fixture(scope="module", params=WRITERS)
def written(request: pytest.FixtureRequest, lake_spark: SparkSession) -> dict[str, Any]:
    """The fields of a record with every type, written by one job and read by another library."""
    value, schema = WRITERS[request.param](lake_spark)
    found: Any = fastavro.schemaless_reader(
        io.BytesIO(value[HEADER_BYTES:]), fastavro.parse_schema(schema.parsed()), None
    )
    return {name: field for name, field in found.items() if name not in POSITION_COLUMNS}


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_every_type_is_written(written: dict[str, Any], field: str) -> None:
    assert written[field] == FIELDS[field][2]


REFUSED = {
    "double_as_int": ("int", "1.5D"),
    "decimal_with_digits_as_long": ("long", "1.5"),
    "text_as_int": ("int", "'1'"),
    "number_as_text": ("string", "1"),
    "number_as_boolean": ("boolean", "1"),
    "number_as_enum": (TYPES["enum"][0], "1"),
    "text_as_bytes": ("bytes", "'a'"),
    "text_as_fixed": (TYPES["fixed"][0], "'a'"),
    "text_as_date": (TYPES["date"][0], "'2026-01-01'"),
    "time_as_date": (TYPES["date"][0], AT_NOON),
    "date_as_time": (TYPES["timestamp_millis"][0], "date'2026-01-01'"),
    "time_as_nanos": (TYPES["timestamp_nanos"][0], AT_NOON),
    "local_as_time": (TYPES["timestamp_millis"][0], "timestamp_ntz'2026-01-01 12:00:00'"),
    "time_as_local": (TYPES["local_millis"][0], AT_NOON),
    "text_as_array": (TYPES["array"][0], "'a'"),
    "array_of_others": (TYPES["array"][0], "array(1)"),
    "map_with_other_keys": (TYPES["map_of_decimals"][0], "map(1, 1.5)"),
    "record_without_a_field": (PRICE, "named_struct()"),
    "record_with_another_field": (PRICE, "named_struct('net', 1, 'tax', 1)"),
    "record_of_text": (PRICE, "named_struct('net', true)"),
    "union_of_no_struct": (TYPES["union"][0], "'a'"),
    "decimal_of_a_time": (DECIMAL, AT_NOON),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_column_that_its_field_cannot_have_is_refused_by_name(lake_spark: SparkSession, name: str) -> None:
    kind, sql = REFUSED[name]
    with pytest.raises(ReadModelError, match="Route r: field f"):
        typed_columns("Route r", record_schema({"f": kind}, "f"), {"f": expr(sql)}, lake_spark.range(1))
    nullable = record_schema({"defined": kind, "f": or_null(kind)}, "f")
    with pytest.raises(ReadModelError, match="Route r: field f"):
        typed_columns("Route r", nullable, {"f": expr(sql)}, lake_spark.range(1))
