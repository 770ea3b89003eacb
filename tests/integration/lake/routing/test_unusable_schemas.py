"""Schemas that one of the two decoders refuses: their records have a reason, the others are folded, and both decoders agree."""

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from include.declarations.event_types.event_schemas import event_schema
from include.kafka.registry.writer_schema import writer_schema
from include.kafka.schema_ids import SchemaIds
from include.kafka.wire_format import header
from include.lake.tables import table_fields
from spark_jobs.folding.decode import REASON, EventDecoder
from spark_jobs.folding.independent_decode import independently_decoded
from spark_jobs.lake.changelog_batch import count_records, newest_records
from spark_jobs.lake.table_definition import column_types
from tests.integration.lake.test_independent_decode import PARTITIONS, frame, record
from tests.support.faults.foreign_writers import decimal
from tests.support.stream_events import BALANCE

GOOD = event_schema("FundsAdded")


def with_types(extra: object = None, **types: object) -> str:
    schema = GOOD.parsed()
    for declared in schema["fields"]:
        declared["type"] = types.get(declared["name"], declared["type"])
    if extra is not None:
        schema["fields"].append({"name": "extra", "type": extra})
    return json.dumps(schema)


def fixed(name: str, precision: int, scale: int) -> dict[str, Any]:
    return {
        "type": "fixed",
        "name": name,
        "size": 8,
        "logicalType": "decimal",
        "precision": precision,
        "scale": scale,
    }


UNUSABLE = {
    10: with_types(amount=decimal(64, 2)),
    11: with_types(amount=decimal(39, 1)),
    12: with_types(amount=decimal(4, 9)),
    13: with_types(extra=decimal(4, 9)),
    14: with_types(amount={"type": "bytes", "logicalType": "decimal"}),
    15: with_types(extra="shop.Missing"),
    16: with_types(extra=["int", "int"]),
    17: with_types(extra=["null", ["int"]]),
    18: with_types(extra={"type": "enum", "name": "E", "symbols": ["not a symbol"]}),
    19: with_types(extra={"type": "record", "name": "a-b", "fields": []}),
    20: with_types(occurredOn={"type": "long", "logicalType": "local-timestamp-millis"}),
    21: '{"type": "enum", "name": "FundsAdded", "symbols": ["a"]}',
    22: '"string"',
    23: "no JSON",
    24: "[" * 10_000,
}
USABLE = {
    30: with_types(extra=decimal(64, 2)),
    31: with_types(extra=["null", "FundsAdded"]),
    32: with_types(extra={"type": "map", "values": ["null", "int", "string", fixed("F", 18, 2)]}),
    33: with_types(extra={"type": "error", "name": "Failure", "fields": []}),
}


@pytest.fixture
def decoder() -> EventDecoder:
    texts = {1: GOOD.text, **UNUSABLE, **USABLE}
    writers = {schema_id: writer_schema(text) for schema_id, text in texts.items()}
    writers[40] = writer_schema("message P {}", "PROTOBUF")
    writers[41] = writer_schema(with_types(amount=decimal(64, 2)).replace('"FundsAdded"', '"NotFolded"'))
    return EventDecoder((GOOD,), SchemaIds(writers), PARTITIONS)


def test_schema_that_a_decoder_refuses_concerns_the_records_with_its_id_only(
    lake_spark: SparkSession, decoder: EventDecoder
) -> None:
    key, value, partition, offset = record(1)
    ids = [1, *UNUSABLE, 40, 41]
    records = frame(lake_spark, [(key, header(i) + value[5:], partition, offset) for i in ids])

    rows = decoder.decode(records).orderBy("offset").collect()

    reasons = dict(zip(ids, [row[REASON] for row in rows], strict=True))
    assert reasons == {1: None, 41: None} | dict.fromkeys([*UNUSABLE, 40], "incompatible_schema")
    assert [row.event_type for row in rows].count("FundsAdded") == 1
    assert independently_decoded(records, decoder).count() == 1
    assert all(decoder.incompatible_ids().values())


@pytest.mark.parametrize("schema_id", USABLE)
def test_unusual_field_that_is_not_read_changes_nothing(decoder: EventDecoder, schema_id: int) -> None:
    assert schema_id in decoder.folded_ids(GOOD)


def test_foreign_schema_of_a_changelog_does_not_stop_a_compaction(lake_spark: SparkSession) -> None:
    key, value, partition, offset = record(1)
    writers = {schema_id: writer_schema(text) for schema_id, text in UNUSABLE.items()}
    state = BALANCE.state_schema.parsed()
    state["fields"][0]["type"] = decimal(64, 2)
    writers[42] = writer_schema(json.dumps(state))
    records = frame(lake_spark, [(key, header(10) + value[5:], partition, offset)])

    columns = column_types(lake_spark, table_fields(BALANCE))
    counts = count_records(newest_records(BALANCE, columns, writers, records))

    assert (counts.records, counts.unreadable) == (1, 1)
