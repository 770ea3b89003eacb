"""Events as the records of a topic with one partition, as Spark's Kafka source has them; records read back, and their dead letters."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import fastavro
from pyspark.sql import DataFrame, Row, SparkSession

from include.declarations.kinds.flow import Flow
from include.declarations.read_model import ReadModel
from include.errors import FoldlakeError
from include.kafka.dead_letters import SOURCE_OFFSET_HEADER
from include.kafka.json_mapping import JsonMapping
from include.kafka.record_schema import RecordSchema
from include.kafka.schema_ids import SchemaIds
from include.kafka.wire_format import header, split
from spark_jobs.folding.decode import FAILURE, undecodable
from spark_jobs.folding.json_decode import event_decoder
from spark_jobs.routing.declared_failures import failure_checks, with_failures

# An event: the values of its fields, and `event_type` if several types are read. `id` and `occurredOn` may be left out.
Event = Mapping[str, Any]
# An object on a topic in JSON: its members, or its text, which may be no valid JSON.
JsonObject = Mapping[str, Any] | str
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = "key binary, value binary, partition int, offset bigint, timestamp timestamp"


def schema_ids(schemas: Sequence[RecordSchema]) -> SchemaIds:
    """Return the ids under which `avro_records` writes events: 1 for the first schema, and so on."""
    return SchemaIds(dict(enumerate(schemas, start=1)))


def avro_records(spark: SparkSession, schemas: Sequence[RecordSchema], events: Sequence[Event]) -> DataFrame:
    """Return events as records of partition 0, in this order, under the keys that their schemas name.

    Raises FoldlakeError for an event whose type or fields are not those of a schema.
    """
    rows = [_avro_record(schemas, event, number) for number, event in enumerate(events)]
    return spark.createDataFrame(rows, COLUMNS)


def json_records(
    spark: SparkSession, schemas: Sequence[RecordSchema], objects: Sequence[JsonObject]
) -> DataFrame:
    """Return JSON objects as records of partition 0, in this order, under the keys that their schemas name.

    The members of an object are those on the topic (`foldlake.json`), which can have other names than the fields of the event type.
    """
    rows = [_json_record(schemas, one, number) for number, one in enumerate(objects)]
    return spark.createDataFrame(rows, COLUMNS)


def rekeyed_records(source: DataFrame, routed: DataFrame) -> DataFrame:
    """Return the outputs of a re-keying route as the records of its topic, with the times of the events.

    source: the records that the route has read.
    """
    times = {row["offset"]: row["timestamp"] for row in source.collect()}
    outputs = sorted(routed.collect(), key=source_offset)
    rows = [
        (row["key"], row["value"], 0, number, times[source_offset(row)]) for number, row in enumerate(outputs)
    ]
    return source.sparkSession.createDataFrame(rows, COLUMNS)


def source_offset(output: Row) -> int:
    """Return the offset of the event from which a route or an emission has made an output."""
    headers = {one["key"]: one["value"] for one in output["headers"]}
    return int(bytes(headers[SOURCE_OFFSET_HEADER]))


def decoded(value: bytes, schemas: Sequence[RecordSchema]) -> dict[str, Any]:
    """Return the fields of a record that was written with one of these schemas, numbered from 1."""
    schema_id, payload = split(value)
    schema = fastavro.parse_schema(schemas[schema_id - 1].parsed())
    found = fastavro.schemaless_reader(io.BytesIO(payload), schema, None)
    assert isinstance(found, dict)  # noqa: S101 - Avro's record
    return found


def as_written(schema: RecordSchema, values: Event, what: str) -> bytes:
    """Return a record in Avro, without framing; raises FoldlakeError if a value does not have the type of its field."""
    written = io.BytesIO()
    try:
        fastavro.schemaless_writer(
            written, fastavro.parse_schema(schema.parsed()), values, strict_allow_default=False
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise FoldlakeError(f"{what} is no {schema.name}: {error}.") from error
    return written.getvalue()


def _avro_record(
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
    value = header(by_name[event_type]) + as_written(schema, values, f"Event {number}")
    key = "key" if schema.key_field is None else str(values[schema.key_field])
    # A record is written when its event occurs.
    return key.encode(), value, 0, number, values["occurredOn"]


def _json_record(
    schemas: Sequence[RecordSchema], written: JsonObject, number: int
) -> tuple[bytes, bytes, int, int, datetime]:
    text = written if isinstance(written, str) else json.dumps(written, default=_no_json, ensure_ascii=False)
    key = _json_key(schemas, text) or "key"
    return key.encode(), text.encode(), 0, number, FIRST + timedelta(seconds=number)


def _json_key(schemas: Sequence[RecordSchema], text: str) -> str | None:
    """Return the member that is the key of the record; None if no event type names one, or the object lacks it."""
    try:
        members = json.loads(text)
    except ValueError:
        return None
    named = [
        field.member
        for schema in schemas
        for field in JsonMapping.of(schema).fields
        if field.name == schema.key_field
    ]
    return next((str(members[name]) for name in named if isinstance(members, dict) and name in members), None)


def _no_json(value: object) -> str:
    raise FoldlakeError(
        f"{value!r} is no value of JSON: give the object as a text, with the value as it is on the topic."
    )


@dataclass(frozen=True)
class DeadLetter:
    """An event that is not folded: its number in the test, from 0, and the reason that its dead letter would have.

    failure: the declaration and the expression that fails, if that is the reason.
    """

    event: int
    reason: str
    failure: str = ""


def found_dead_letters(records: DataFrame, declaration: ReadModel | Flow) -> list[DeadLetter]:
    """Return the records that the driver would write to the dead-letter topic, in order."""
    read = declaration.events
    events = event_decoder(read, schema_ids(read.readers), 1).decode(records)
    rows = undecodable(with_failures(events, failure_checks([declaration]))).orderBy("offset").collect()
    return [DeadLetter(row["offset"], row["reason"], row[FAILURE] or "") for row in rows]


def require_no_dead_letters(
    records: DataFrame, declaration: ReadModel | Flow, *, allow_dead_letters: bool
) -> None:
    """Raise FoldlakeError for a record that the driver would write to the dead-letter topic, unless these are allowed."""
    if not allow_dead_letters and (found := found_dead_letters(records, declaration)):
        raise refused(found[0], declaration.source_topic)


def refused(letter: DeadLetter, topic: str) -> FoldlakeError:
    """Return the error of an event that would be a dead letter of a topic."""
    failure = f" ({letter.failure})" if letter.failure else ""
    return FoldlakeError(
        f"Event {letter.event} would be a dead letter of {topic}, with the reason {letter.reason}{failure}: correct the event, or give "
        "`allow_dead_letters=True` to leave it out."
    )
