"""Events as the records of a topic with one partition, as Spark's Kafka source has them, and records read back."""

import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import fastavro
from pyspark.sql import DataFrame, SparkSession

from include.errors import FoldlakeError
from include.kafka.record_schema import RecordSchema
from include.kafka.wire_format import header, split
from spark_jobs.folding.decode import SchemaIds

# An event: the values of its fields, and `event_type` if several types are read. `id` and `occurredOn` may be left out.
Event = Mapping[str, Any]
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = "key binary, value binary, partition int, offset bigint, timestamp timestamp"


def schema_ids(schemas: Sequence[RecordSchema]) -> SchemaIds:
    """Return the ids under which `source_records` writes events: 1 for the first schema, and so on."""
    return SchemaIds(dict(enumerate(schemas, start=1)))


def source_records(
    spark: SparkSession, schemas: Sequence[RecordSchema], events: Sequence[Event]
) -> DataFrame:
    """Return events as records of partition 0, in this order, under the keys that their schemas name.

    Raises FoldlakeError for an event whose type or fields are not those of a schema.
    """
    rows = [_record(schemas, event, number) for number, event in enumerate(events)]
    return spark.createDataFrame(rows, COLUMNS)


def decoded(value: bytes, schemas: Sequence[RecordSchema]) -> dict[str, Any]:
    """Return the fields of a record that was written with one of these schemas, numbered from 1."""
    schema_id, payload = split(value)
    schema = fastavro.parse_schema(schemas[schema_id - 1].parsed())
    found = fastavro.schemaless_reader(io.BytesIO(payload), schema, None)
    assert isinstance(found, dict)  # noqa: S101 - Avro's record
    return found


def _record(
    schemas: Sequence[RecordSchema], event: Event, number: int
) -> tuple[bytes, bytes, int, int, datetime]:
    by_name = {schema.name: schema_id for schema_id, schema in enumerate(schemas, start=1)}
    event_type = event.get("event_type", schemas[0].name if len(schemas) == 1 else None)
    if event_type not in by_name:
        raise FoldlakeError(f"event_type of event {number} is {event_type!r}; allowed: {', '.join(by_name)}.")
    schema = schemas[by_name[event_type] - 1]
    values: dict[str, Any] = {"id": f"event-{number}", "occurredOn": FIRST + timedelta(seconds=number)}
    values |= {name: value for name, value in event.items() if name != "event_type"}
    unknown = sorted(values.keys() - schema.fields - {"id"})
    if unknown:
        raise FoldlakeError(
            f"{event_type} has no field {unknown[0]}; its fields: {', '.join(schema.fields)}."
        )
    written = io.BytesIO()
    try:
        fastavro.schemaless_writer(
            written, fastavro.parse_schema(schema.parsed()), values, strict_allow_default=False
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FoldlakeError(f"Event {number} is no {event_type}: {error}.") from error
    key = "key" if schema.key_field is None else str(values[schema.key_field])
    # A record is written when its event occurs.
    return key.encode(), header(by_name[event_type]) + written.getvalue(), 0, number, values["occurredOn"]
