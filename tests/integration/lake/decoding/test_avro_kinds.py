"""Fields of every kind have their documented values in both decoders, and rules hold at every depth."""

import json
import struct
from datetime import date, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.folding.decode import REASON, good_events
from spark_jobs.folding.independent_decode import independently_decoded
from tests.support.avro.both_decoders import decoder_of, records_of, values
from tests.support.avro.payloads import varint
from tests.support.avro.schemas import SchemaCase

Avro = Any
UUID = {"type": "string", "logicalType": "uuid"}
TEXT = "9b2d3f1c-8a4e-4c57-9d3b-0c8f2f1e7a66"
ENCODED = varint(36) + TEXT.encode()
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2}
FIXED = {"type": "fixed", "name": "Raw", "size": 2}
YEAR_10000_MILLIS = 253_402_300_800_000


def logical(of: str, name: str) -> dict[str, Avro]:
    return {"type": of, "logicalType": name}


def record(name: str, **fields: Avro) -> dict[str, Avro]:
    declared = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, "fields": declared}


def with_defaults(**fields: tuple[Avro, Avro]) -> dict[str, Avro]:
    declared = [{"name": n, "type": kind, "default": default} for n, (kind, default) in fields.items()]
    return {"type": "record", "name": "Part", "fields": declared}


A, B = record("A", a="int"), record("B", b="string")
DEFAULTS = with_defaults(
    raw=("bytes", "\u00ff"), fixed=(FIXED, "\u0001\u00ff"), price=(DECIMAL, "\u0001\u0000")
)

# Writer's type, reader's type, payload, value.
KINDS: list[tuple[Avro, Avro, bytes, Any]] = [
    (UUID, UUID, ENCODED, TEXT),
    (["null", UUID], ["null", UUID], varint(1) + ENCODED, TEXT),
    (
        {"type": "array", "items": UUID},
        {"type": "array", "items": UUID},
        varint(1) + ENCODED + varint(0),
        [TEXT],
    ),
    (logical("int", "time-millis"), logical("int", "time-millis"), varint(1_000), 1_000),
    (logical("long", "time-micros"), logical("long", "time-micros"), varint(1_000), 1_000),
    (logical("long", "timestamp-nanos"), logical("long", "timestamp-nanos"), varint(5), 5),
    (logical("long", "local-timestamp-nanos"), logical("long", "local-timestamp-nanos"), varint(5), 5),
    (
        logical("long", "local-timestamp-millis"),
        logical("long", "local-timestamp-millis"),
        varint(1_500),
        datetime(1970, 1, 1, 0, 0, 1, 500_000),  # noqa: DTZ001 - a time without a time zone
    ),
    (
        logical("long", "local-timestamp-micros"),
        ["null", logical("long", "local-timestamp-micros")],
        varint(7),
        datetime(1970, 1, 1, 0, 0, 0, 7),  # noqa: DTZ001 - as above
    ),
    (logical("int", "date"), logical("int", "date"), varint(-1), date(1969, 12, 31)),
    (
        ["null", "int", "string"],
        ["null", "int", "string"],
        varint(2) + varint(1) + b"x",
        {"member0": None, "member1": "x"},
    ),
    ([A, B], [A, B], varint(1) + varint(1) + b"x", {"member0": None, "member1": {"b": "x"}}),
    (["int", "long"], ["int", "long"], varint(0) + varint(7), 7),
    (record("Old", a="int"), record("New", a="int"), varint(7), {"a": 7}),
    (record("Part"), DEFAULTS, b"", {"raw": b"\xff", "fixed": b"\x01\xff", "price": "2.56"}),
    ("int", "double", varint(3), struct.pack("<d", 3.0)),
]
ARRAY_OF_TEXT = {"type": "array", "items": "string"}
NO_TEXT = varint(1) + b"\xff"
LATE = varint(YEAR_10000_MILLIS)
# Type, payload, reason.
REJECTED: list[tuple[Avro, bytes, str]] = [
    (ARRAY_OF_TEXT, varint(1) + NO_TEXT + varint(0), "invalid_text"),
    ({"type": "map", "values": "int"}, varint(1) + NO_TEXT + varint(1) + varint(0), "invalid_text"),
    ({"type": "map", "values": B}, varint(1) + varint(0) + NO_TEXT + varint(0), "invalid_text"),
    (["null", "int", B], varint(2) + NO_TEXT, "invalid_text"),
    (
        {"type": "array", "items": ["null", MILLIS]},
        varint(1) + varint(1) + LATE + varint(0),
        "time_out_of_range",
    ),
    (record("Part", day=logical("int", "date")), varint(2**30), "time_out_of_range"),
    # An array that claims a billion items: a JVM would allocate memory for all of them.
    ({"type": "array", "items": "long"}, varint(2**30), "undecodable_payload"),
]


def case(reader: Avro, writer: Avro) -> SchemaCase:
    """Return the schemas of an event with one field of these types."""
    return SchemaCase(event(reader), event(writer), 0)


def event(avro_type: Avro) -> str:
    fields = [{"name": "occurredOn", "type": MILLIS}, {"name": "f0", "type": avro_type}]
    return json.dumps({"type": "record", "name": "Event", "fields": fields})


def test_field_of_each_kind_has_the_same_value_in_both_decoders(lake_spark: SparkSession) -> None:
    decoder = decoder_of([case(reader, writer) for writer, reader, _, _ in KINDS])
    records = records_of(lake_spark, [(i, varint(0) + payload) for i, (_, _, payload, _) in enumerate(KINDS)])

    for decoded in (good_events(decoder.decode(records)), independently_decoded(records, decoder)):
        found = values(decoded)
        fields = [found[i][1][f"f0_{i}"] if i in found else "rejected" for i in range(len(KINDS))]
        assert fields == [expected for _, _, _, expected in KINDS]


def test_rules_hold_at_every_depth(lake_spark: SparkSession) -> None:
    decoder = decoder_of([case(one, one) for one, _, _ in REJECTED])
    records = records_of(lake_spark, [(i, varint(0) + payload) for i, (_, payload, _) in enumerate(REJECTED)])

    reasons = [
        row[REASON] for row in decoder.decode(records).select("offset", REASON).orderBy("offset").collect()
    ]

    assert reasons == [reason for _, _, reason in REJECTED]
    assert independently_decoded(records, decoder).count() == 0


@pytest.mark.parametrize("namespace", ["", "web"])
def test_type_is_found_by_its_full_name_whatever_the_writers_namespace(
    lake_spark: SparkSession, namespace: str
) -> None:
    part = record("Part", a="int")
    fields = [
        {"name": "occurredOn", "type": MILLIS},
        {"name": "f0", "type": part},
        {"name": "f1", "type": ["null", "shop.Part"]},
    ]
    reader = {"type": "record", "name": "Event", "namespace": "shop", "fields": fields}
    full_name = f"{namespace}.Part".removeprefix(".")
    written = [*fields[:2], {"name": "f1", "type": ["null", full_name]}]
    writer = {"type": "record", "name": "Event", "namespace": namespace, "fields": written}
    decoder = decoder_of([SchemaCase(json.dumps(reader), json.dumps(writer), 0)])
    records = records_of(lake_spark, [(0, varint(0) + varint(7) + varint(1) + varint(8))])

    for decoded in (good_events(decoder.decode(records)), independently_decoded(records, decoder)):
        fields_found = values(decoded)[0][1]
        assert (fields_found["f0_0"], fields_found["f1_0"]) == ({"a": 7}, {"a": 8})
