"""Reads what the system `logs` has written into tables of DuckDB."""

import io
from collections.abc import Callable, Iterator
from typing import Any, cast

import duckdb
import fastavro
import pyarrow as pa
from confluent_kafka import Message

from demo.log_tables import create_table, messages
from demo.logs.loading import bytes_of
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.wire_format import split
from include.settings import Settings

TEXT, LONG, TIME = pa.string(), pa.int64(), pa.timestamp("ms", "UTC")
PLACE = {"key": TEXT, "partition": pa.int32(), "offset": LONG}
EVENTS = {"browserHash": TEXT, "occurredOn": TIME, "kind": TEXT, "action": TEXT, "solved": pa.bool_()}


def read_topic(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    table: str,
    topic: str,
    event_type: str,
    columns: dict[str, pa.DataType],
) -> None:
    """Create a table of the records of a topic that are of an event type: key, partition, offset, and these fields.

    Raises KafkaUnavailableError, RegistryUnavailableError.
    """
    registry = SchemaRegistry(settings.registry.url)

    def rows() -> Iterator[tuple[Any, ...]]:
        for message in messages(settings, topic):
            schema_id, payload = split(message.value() or b"")
            schema = registry.schema_by_id(schema_id)
            if schema is not None and schema.name == event_type:
                record = _decoded(payload, schema.text, schema.parsed)
                yield (*_place(message), *(record[name] for name in columns))

    create_table(connection, table, PLACE | columns, rows())


def read_letters(connection: duckdb.DuckDBPyConnection, settings: Settings, table: str, topic: str) -> None:
    """Create a table of the dead letters of a topic: reason and text. Raises KafkaUnavailableError."""

    def row(message: Message) -> tuple[Any, ...]:
        headers = dict(cast("list[tuple[str, bytes]]", message.headers() or []))
        return headers["reason"].decode(), (message.value() or b"").decode(errors="replace")

    create_table(
        connection,
        table,
        {"reason": TEXT, "text": TEXT},
        map(row, messages(settings, f"{topic}.dead-letter")),
    )


_parsed: dict[str, Any] = {}


def _decoded(payload: bytes, text: str, parse: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    if text not in _parsed:
        _parsed[text] = fastavro.parse_schema(parse())
    return cast("dict[str, Any]", fastavro.schemaless_reader(io.BytesIO(payload), _parsed[text], None))


def _place(message: Message) -> tuple[str, int | None, int | None]:
    return bytes_of(message.key()).decode(), message.partition(), message.offset()
