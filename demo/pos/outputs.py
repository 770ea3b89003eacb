"""Reads what the branches of the system `pos` wrote into tables of DuckDB."""

import hashlib
import io
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
from confluent_kafka import Message

from demo.pos.dataset import SYSTEM
from demo.pos.loading import first_string
from include.kafka.log_reading import end_offsets, log_consumer, read_tail
from include.kafka.record_schema import schema_file
from include.kafka.topics import admin_client, partition_count
from include.kafka.wire_format import HEADER_BYTES
from include.settings import Settings

# Rows of a table that are handed over at once.
BATCH_ROWS = 20_000
PLACE = {"key": pa.string(), "partition": pa.int32(), "offset": pa.int64()}
MONEY, POINTS, LONG = pa.decimal128(18, 2), pa.decimal128(28, 2), pa.int64()
TEXT = pa.string()
# SHA-256 of a record's value: a shipment is the invoice, byte for byte.
DIGEST = "digest"
# Topic -> event type and the fields that are compared.
TOPICS: dict[str, tuple[str, dict[str, pa.DataType]]] = {
    "shipment-service": (
        "PosInvoice",
        {"id": TEXT, "totalAmount": MONEY, "numberOfItems": LONG, DIGEST: TEXT},
    ),
    "trend-records": (
        "TrendRecord",
        dict.fromkeys(("id", "invoiceNumber", "itemCode", "customerType", "deliveryType"), TEXT)
        | {"itemQty": LONG, "totalValue": MONEY},
    ),
    "loyalty-invoices": (
        "LoyaltyInvoice",
        {"id": TEXT, "invoiceNumber": TEXT, "storeId": TEXT, "amount": MONEY, "kind": TEXT},
    ),
    "loyalty-management-service": (
        "Notification",
        {"id": TEXT, "invoiceNumber": TEXT, "kind": TEXT, "totalAmount": MONEY}
        | {"earnedLoyaltyPoints": MONEY, "totalLoyaltyPoints": POINTS},
    ),
}


def read_outputs(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    table: str,
    topic: str,
    on_record: Callable[[], None] = lambda: None,
) -> None:
    """Create a table of the records of a topic: their key, partition, offset, and the fields that are compared; empty without the topic.

    Raises KafkaUnavailableError.
    """
    event_type, columns = TOPICS[topic]
    (path,) = SYSTEM.glob(f"**/schemas/{event_type}.avsc")
    schema = fastavro.parse_schema(schema_file(path).parsed())

    def row(message: Message) -> tuple[Any, ...]:
        on_record()
        value, key = message.value() or b"", message.key() or b""
        record: Any = fastavro.schemaless_reader(io.BytesIO(value[HEADER_BYTES:]), schema, None)
        if DIGEST in columns:
            record[DIGEST] = _digest(value)
        place = (key.decode() if isinstance(key, bytes) else key, message.partition(), message.offset())
        return (*place, *(record[name] for name in columns))

    _create(connection, table, PLACE | columns, map(row, _messages(settings, topic)))


def read_source(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    table: str,
    topic: str,
    on_record: Callable[[], None] = lambda: None,
) -> None:
    """Create a table of the ids and the digests of the events on the source topic. Raises KafkaUnavailableError."""

    def row(message: Message) -> tuple[Any, ...]:
        on_record()
        value = message.value() or b""
        return first_string(value), _digest(value)

    _create(connection, table, {"id": TEXT, DIGEST: TEXT}, map(row, _messages(settings, topic)))


def _digest(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()


def _create(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: dict[str, pa.DataType],
    rows: Iterator[tuple[Any, ...]],
) -> None:
    schema = pa.schema(columns)
    batch = pa.Table.from_pylist([], schema)
    connection.register("batch", batch)
    connection.execute(f"create or replace table {table} as from batch")
    while chunk := list(islice(rows, BATCH_ROWS)):
        arrays = [
            pa.array(values, kind)
            for values, kind in zip(zip(*chunk, strict=True), columns.values(), strict=True)
        ]
        connection.register("batch", pa.table(arrays, schema=schema))
        connection.execute(f"insert into {table} from batch")
    connection.unregister("batch")


def _messages(settings: Settings, topic: str) -> Iterator[Message]:
    admin = admin_client(settings.kafka.bootstrap_servers, log_level=0)
    partitions = partition_count(admin, topic) or 0
    consumer = log_consumer(settings.kafka.bootstrap_servers)
    try:
        for partition in range(partitions):
            yield from read_tail(consumer, topic, partition)
    finally:
        consumer.close()


def record_count(settings: Settings, topic: str) -> int:
    """Return the number of records on a topic without retention; 0 if it does not exist. Raises KafkaUnavailableError."""
    partitions = partition_count(admin_client(settings.kafka.bootstrap_servers, log_level=0), topic) or 0
    consumer = log_consumer(settings.kafka.bootstrap_servers)
    try:
        return sum(end_offsets(consumer, topic, partitions))
    finally:
        consumer.close()
