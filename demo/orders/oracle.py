"""Which orders are active and where, and which updates are too late: computed by DuckDB from the log.

Independent of the read model's fold and decoder: fastavro decodes, and SQL decides.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb
import fastavro
import pyarrow as pa
from confluent_kafka import Message

from demo.log_tables import create_table, messages
from demo.orders.couriers import SCHEMA, TOPIC
from include.kafka.wire_format import HEADER_BYTES
from include.settings import Settings

TIME = pa.timestamp("ms", tz="UTC")
COLUMNS = {
    "partition": pa.int32(),
    "offset": pa.int64(),
    "written_on": TIME,
    "order_number": pa.string(),
    "courier": pa.string(),
    "latitude": pa.float64(),
    "longitude": pa.float64(),
    "status": pa.string(),
    "placed_on": TIME,
    "located_on": TIME,
}
ACCEPTED = """
create or replace view accepted as from updates
where written_on <= placed_on + interval 4 hours and placed_on <= written_on + interval 1 hour
"""
ACTIVE = """
with left_over as (
  from accepted
  where order_number not in (select order_number from accepted where status in ('DELIVERED', 'CANCELLED'))
)
select order_number, courier, latitude, longitude, status, placed_on, located_on
from left_over
where placed_on >= (select max(placed_on) from left_over) - interval 6 hours
qualify row_number() over (partition by order_number order by located_on desc, "offset" desc) = 1
"""
# What the counts say of the same log.
COUNTS = """
select count(distinct order_number), count(*), (select count(*) from updates) - count(*),
       (select count(distinct order_number) from accepted where status in ('DELIVERED', 'CANCELLED'))
from accepted
"""

Location = tuple[str, float, float, str, datetime, datetime]


@dataclass(frozen=True)
class Counts:
    """Of a log: its orders, the updates that are in time, those that are too late, and the orders that have ended."""

    orders: int
    accepted: int
    late: int
    ended: int


class Oracle:
    """The updates on the log, as of when it was read."""

    def __init__(self, settings: Settings, on_record: Callable[[], None] = lambda: None) -> None:
        """Read the log. on_record: called for each record. Raises KafkaUnavailableError."""
        self._connection = duckdb.connect()
        self._connection.execute("set timezone = 'UTC'")
        parsed = fastavro.parse_schema(SCHEMA.parsed())

        def row(message: Message) -> tuple[Any, ...]:
            on_record()
            value = message.value() or b""
            update: Any = fastavro.schemaless_reader(io.BytesIO(value[HEADER_BYTES:]), parsed, None)
            return (
                message.partition(),
                message.offset(),
                message.timestamp()[1],
                update["orderNumber"],
                update["courier"],
                update["latitude"],
                update["longitude"],
                update["status"],
                update["placedOn"],
                update["occurredOn"],
            )

        create_table(self._connection, "updates", COLUMNS, map(row, messages(settings, TOPIC)))
        self._connection.execute(ACCEPTED)

    def active(self) -> dict[str, Location]:
        """Return the location of each active order: courier, latitude, longitude, status, when placed, when located."""
        return {number: tuple(rest) for number, *rest in self._connection.execute(ACTIVE).fetchall()}

    def counts(self) -> Counts:
        """Return what the log consists of."""
        ((orders, accepted, late, ended),) = self._connection.execute(COUNTS).fetchall()
        return Counts(orders, accepted, late, ended)
