"""A check reads from the nodes' JSON exactly what a state record holds, of every Avro type; numbers that JSON lacks are compared as such."""

import io
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import col

from include.declarations.read_model import decimal_type
from include.kafka.record_schema import RecordSchema
from include.kafka.state_record import RawDecoder, decode_state_record
from include.kafka.wire_format import header
from include.position import POSITION_RECORD_FIELDS
from query_api.http.json_text import dumps, raw_json
from spark_jobs.quality.stores.nodes import FAILFAST
from tests.support.lake.compared_by_both import compared_by_both

NAN, INF = math.nan, math.inf
AT = datetime(2026, 1, 2, 3, 4, 5, 123_456, tzinfo=UTC)
MAP = {"type": "map", "values": ["null", "double"]}


def logical(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "logicalType": name}


# Type -> values; a record is made of the first ones, the second ones, and so on, of all types.
VALUES: list[tuple[Any, list[Any]]] = [
    ("double", [NAN, INF, -INF, -0.0, 5e-324, 1.7976931348623157e308]),
    ("float", [NAN, -INF, INF, -0.0, 1.100000023841858, 3.4028234663852886e38]),
    (["null", "double"], [None, NAN, 1.5]),
    ("bytes", [b"", b"\x00\xff"]),
    ({"type": "fixed", "name": "Three", "size": 3}, [b"\x00\xff\x01"]),
    (decimal_type(38, 0), [Decimal("9" * 38), Decimal(-1), Decimal(0)]),
    (
        {"type": "fixed", "name": "D", "size": 8, **logical("fixed", "decimal"), "precision": 10, "scale": 2},
        [Decimal("-1.20")],
    ),
    (logical("int", "date"), [date(2026, 1, 2), date(1, 1, 1), date(9999, 12, 31)]),
    (logical("int", "time-millis"), [3_723_004]),
    (["null", logical("long", "time-micros")], [3_723_000_004, None]),
    (logical("long", "timestamp-millis"), [AT.replace(microsecond=123_000), datetime(1, 1, 3, tzinfo=UTC)]),
    (logical("long", "timestamp-micros"), [AT, datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]),
    (logical("long", "local-timestamp-millis"), [AT.replace(microsecond=123_000, tzinfo=None)]),
    (logical("long", "local-timestamp-micros"), [AT.replace(tzinfo=None)]),
    (logical("string", "uuid"), ["00000000-0000-0000-0000-000000000005"]),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, ["A", "B"]),
    ("string", ["", "NaN", 'é\u2028"\\\n\x00', "😀"]),
    ("long", [2**63 - 1, -(2**63)]),
    ("int", [-(2**31)]),
    ("boolean", [True, False]),
    ({"type": "array", "items": ["null", "double"]}, [[], [NAN, -INF, None]]),
    (MAP, [{}, {"": NAN}, {'é".': INF}, {"x": None}]),
    (
        {
            "type": "record",
            "name": "R",
            "fields": [{"name": "x", "type": "double"}, {"name": "y", "type": ["null", decimal_type(9, 2)]}],
        },
        [{"x": NAN, "y": None}, {"x": 1.0, "y": Decimal("0.10")}],
    ),
]
FIELDS = [{"name": f"v{number}", "type": kind} for number, (kind, _) in enumerate(VALUES)]
POSITION = [{"name": field.name, "type": field.avro_type} for field in POSITION_RECORD_FIELDS]
SCHEMA = json.dumps({"type": "record", "name": "S", "fields": [*FIELDS, *POSITION]})
ROWS = max(len(values) for _, values in VALUES)


def payloads() -> list[bytes]:
    parsed = fastavro.parse_schema(json.loads(SCHEMA.replace('"logicalType": "time-', '"was": "time-')))
    found = []
    for row in range(ROWS):
        buffer = io.BytesIO()
        record = {f"v{number}": values[row % len(values)] for number, (_, values) in enumerate(VALUES)}
        position = {"event_count": 1, "source_partition": 0, "source_offset": 0, "occurred_on": AT}
        fastavro.schemaless_writer(buffer, parsed, record | position)
        found.append(buffer.getvalue())
    return found


def test_every_value_is_read_back_exactly(lake_spark: SparkSession) -> None:
    rows = []
    for payload in payloads():
        record = decode_state_record(header(7) + payload, lambda _: RecordSchema.parse(SCHEMA, "a test"))
        text = dumps(record.state)
        json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
        rows.append((bytearray(payload), text))
    decoded = lake_spark.createDataFrame(rows, "value binary, json string").select(
        from_avro("value", SCHEMA).alias("record"), "json"
    )
    state = decoded.select("record.*").drop(*(str(field["name"]) for field in POSITION)).schema
    both = decoded.select("record", F.from_json("json", state, FAILFAST).alias("read"))

    def same(name: str, kind: object) -> Column:
        left, right = col(f"record.{name}"), col(f"read.{name}")
        if kind == MAP:  # maps are not compared by Spark
            left, right = left.cast("string"), right.cast("string")
        return left.eqNullSafe(right).alias(name)

    found = both.select(*(same(field["name"], field["type"]) for field in FIELDS)).collect()

    wrong = {json.dumps(field["type"]) for row in found for field in FIELDS if not row[field["name"]]}
    assert wrong == set()


def test_named_lookups_answer_with_the_same_json_as_records() -> None:
    decoder = RawDecoder(lambda _: SCHEMA)
    for payload in payloads():
        record = decode_state_record(header(7) + payload, lambda _: RecordSchema.parse(SCHEMA, "a test"))
        raw = decoder.fields(header(7) + payload)

        for field in FIELDS:
            value = raw[field["name"]]
            text = "null" if value is None else raw_json(field["type"])(value)
            assert text == dumps(record.state[field["name"]]), field["type"]


def test_doubles_that_are_no_numbers_are_compared(lake_spark: SparkSession) -> None:
    columns = "key string, x double, event_count long"
    before = [("nan", NAN, 1), ("inf", INF, 1), ("zero", 0.0, 1), ("to nan", 1.0, 1), ("up", 1.0, 1)]
    after = [("nan", NAN, 1), ("inf", INF, 1), ("zero", -0.0, 1), ("to nan", NAN, 1), ("up", 3.0, 1)]

    found = compared_by_both(
        lake_spark.createDataFrame(before, columns),
        lake_spark.createDataFrame(after, columns),
        ("x",),
        ("x",),
    )

    assert found.changed == 2
    assert (found.fields["x"].before, found.fields["x"].after, found.fields["x"].moved) == (
        "NaN",
        "NaN",
        "NaN",
    )
    assert sum(one.keys for one in found.fields["x"].bins) == 1
    assert [change.key for change in found.largest] == ["to nan", "up"]
    assert found.largest[0].fields["x"].after == "NaN"
