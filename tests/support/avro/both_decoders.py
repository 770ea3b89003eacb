"""What both decoders return for payloads of any schemas."""

import json
import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

from confluent_kafka import murmur2
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import Row

from include.declarations.event_types.event_schemas import require_decodable
from include.kafka.avro.avro_types import avro_type
from include.kafka.record_schema import RecordSchema
from include.kafka.schema_ids import SchemaIds
from include.kafka.wire_format import header
from spark_jobs.folding.decode import EventDecoder, good_events
from spark_jobs.folding.independent_decode import independently_decoded
from tests.support.avro.payloads import damaged, payload
from tests.support.avro.schemas import SchemaCase

KEY = b"a key"
PARTITIONS = 4
# Valid payloads of a schema, and as many damaged ones.
PAYLOADS = 6


@dataclass(frozen=True)
class Difference:
    """What the decoders return for one payload of a case."""

    case: SchemaCase
    payload: bytes
    spark: Any
    python: Any


def differences(spark: SparkSession, cases: Sequence[SchemaCase]) -> tuple[list[Difference], int]:
    """Return how the decoders differ on the payloads of these schemas, and how many events both return."""
    decoder, payloads = decoder_of(cases), list(payloads_of(cases))
    records = records_of(spark, payloads)
    try:
        ours = values(good_events(decoder.decode(records)))
        theirs = values(independently_decoded(records, decoder))
    except PySparkException as error:
        if len(cases) == 1:
            return [Difference(cases[0], b"", f"{error}"[:2000], None)], 0
        half = len(cases) // 2
        first, second = differences(spark, cases[:half]), differences(spark, cases[half:])
        return first[0] + second[0], first[1] + second[1]
    return [
        Difference(cases[index], value, ours.get(offset), theirs.get(offset))
        for offset, (index, value) in enumerate(payloads)
        if ours.get(offset) != theirs.get(offset)
    ], len(ours)


def records_of(spark: SparkSession, payloads: Sequence[tuple[int, bytes]]) -> DataFrame:
    """Return the records of payloads, each with the index of its case, as Spark's Kafka source has them."""
    rows = [
        (KEY, header(index) + value, murmur2(KEY, PARTITIONS), offset)
        for offset, (index, value) in enumerate(payloads)
    ]
    return spark.createDataFrame(rows, "key binary, value binary, partition int, offset bigint")


def decoder_of(cases: Sequence[SchemaCase]) -> EventDecoder:
    """Return a decoder with one event type per case, and the case's index as its schema id."""
    readers, writers = [], {}
    for index, case in enumerate(cases):
        readers.append(named(case.reader, index))
        writers[index] = named(case.writer, index)
        require_decodable(readers[-1])
    return EventDecoder(tuple(readers), SchemaIds(writers, stop_at_unknown=False), PARTITIONS)


def named(text: str, index: int) -> RecordSchema:
    """Return the schema of a case with a name and fields of its own: fields that event types share must have one type."""
    own = re.sub(r'"(old_)?(f\d)"', rf'"\1\2_{index}"', text)
    return RecordSchema.parse(json.dumps(json.loads(own) | {"name": f"Event{index}"}), "a test")


def payloads_of(cases: Sequence[SchemaCase]) -> Iterator[tuple[int, bytes]]:
    """Yield the index of a case, and a payload of its writer."""
    for index, case in enumerate(cases):
        random = Random(case.seed)
        writer = avro_type(json.loads(case.writer))
        for _ in range(PAYLOADS):
            valid = payload(writer, random)
            yield index, valid
            yield index, damaged(valid, random)


def values(events: DataFrame) -> dict[int, Any]:
    """Return offset -> the event's type and fields."""
    return {
        row.offset: (row.event_type, comparable(row[row.event_type]))
        for row in events.drop("occurredOn").collect()
    }


def comparable(value: Any) -> Any:  # noqa: ANN401 - a value of any type
    """Return a value as one that equals another only if both are the same, of a double bit by bit."""
    match value:
        case Row():
            return {name: comparable(one) for name, one in value.asDict(recursive=False).items()}
        case dict():
            return [(key, comparable(one)) for key, one in value.items()]
        case list():
            return [comparable(one) for one in value]
        case float():
            return "NaN" if value != value else struct.pack("<d", value)  # noqa: PLR0124 - not a number
        case Decimal() | bytearray():
            return str(value)
    return value
