"""Reads the records of topics into tables of DuckDB, in which they are compared with an oracle."""

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import Any

import duckdb
import pyarrow as pa
from confluent_kafka import Message

from include.kafka.log_reading import end_offsets, log_consumer, read_tail
from include.kafka.topics import admin_client, partition_count
from include.settings import Settings

# Rows of a table that are handed over at once.
BATCH_ROWS = 20_000


def create_table(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    columns: dict[str, pa.DataType],
    rows: Iterator[tuple[Any, ...]],
) -> None:
    """Create or replace a table of these columns and rows."""
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


def messages(settings: Settings, topic: str) -> Iterator[Message]:
    """Yield every record of a topic, one partition after the other; none if it does not exist. Raises KafkaUnavailableError."""
    admin = admin_client(settings.kafka_connection, log_level=0)
    partitions = partition_count(admin, topic) or 0
    with closing(log_consumer(settings.kafka_connection)) as consumer:
        for partition in range(partitions):
            yield from read_tail(consumer, topic, partition)


def record_count(settings: Settings, topic: str) -> int:
    """Return the number of records on a topic without retention; 0 if it does not exist. Raises KafkaUnavailableError."""
    partitions = partition_count(admin_client(settings.kafka_connection, log_level=0), topic) or 0
    with closing(log_consumer(settings.kafka_connection)) as consumer:
        return sum(end_offsets(consumer, topic, partitions))
