"""Reads what the branches of the system `pos` wrote into tables of DuckDB: topics, line items in the lake, and points on a query node."""

import hashlib
import io
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from http import HTTPStatus
from pathlib import Path
from typing import Any

import duckdb
import duckdb_ext
import fastavro
import httpx
import pyarrow as pa
from confluent_kafka import Message

from demo.log_tables import create_table, messages
from demo.pos.dataset import SYSTEM
from demo.pos.loading import first_string
from include.declarations.event_table import EventTable
from include.declarations.load import load_catalog
from include.kafka.record_schema import schema_file
from include.kafka.wire_format import HEADER_BYTES
from include.nodes.local_nodes import NodeAddress
from include.settings import Settings

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

    create_table(connection, table, PLACE | columns, map(row, messages(settings, topic)))


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

    create_table(connection, table, {"id": TEXT, DIGEST: TEXT}, map(row, messages(settings, topic)))


def _digest(value: bytes) -> str:
    return hashlib.sha256(value).hexdigest()


def trend_declaration() -> EventTable:
    """Return the declaration of the event table."""
    return load_catalog((SYSTEM,)).event_tables["trend"]


def open_line_items(connection: duckdb.DuckDBPyConnection, path: str, view: str) -> None:
    """Create a view of the Delta table at `path`. DuckDB's extension is that of a package: nothing is downloaded."""
    (folder, *_) = duckdb_ext.__path__
    connection.execute(f"set extension_directory = '{Path(folder) / 'extensions'}'")
    connection.execute("load delta")
    # Times are stored in UTC, and the months and weeks of the queries are those of UTC.
    connection.execute("set timezone = 'UTC'")
    quoted = path.replace("'", "''")
    connection.execute(f"create or replace view {view} as from delta_scan('{quoted}')")


LOOKUP_TIMEOUT_S = 10.0
PARALLEL_LOOKUPS = 4

State = tuple[str, Decimal, Decimal, int, int]


def look_up_points(
    node: NodeAddress, cards: Sequence[str], on_answer: Callable[[], None] = lambda: None
) -> list[State]:
    """Return card, points, amount spent, number of invoices and of cancellations of each card that the node answers for.

    Args:
        node: a query node on this machine.
        cards: numbers of cards.
        on_answer: called after each card.
    """
    with node.client(LOOKUP_TIMEOUT_S) as client:

        def look_up(card: str) -> State | None:
            try:
                answer = client.get("/api/loyalty.getPoints", params={"cardNumber": card})
            except httpx.HTTPError:
                return None
            finally:
                on_answer()
            if answer.status_code != HTTPStatus.OK:
                return None
            # Decimals are parsed from the text: points never pass through a float.
            state = json.loads(answer.text, parse_float=Decimal)
            return (
                card,
                Decimal(state["points"]),
                Decimal(state["spent"]),
                state["invoices"],
                state["cancellations"],
            )

        with ThreadPoolExecutor(PARALLEL_LOOKUPS) as pool:
            return [state for state in pool.map(look_up, cards) if state is not None]
