"""The tables of a check, in the database of the engine that compares: queries are written once, in SQL of DuckDB."""

from typing import Any, Protocol

import duckdb
import pyarrow as pa

# A function that DuckDB lacks (include/replay/check/log_replay.py).
KEY_PARTITION = "key_partition"


class CheckTables(Protocol):
    """The tables of one check.

    Queries are SQL of DuckDB, as far as sqlglot translates it to Spark's: names in double quotes, no ASOF, no BY NAME, no FILTER of a window.
    """

    def create(self, name: str, query: str, key_partitions: int = 0) -> None:
        """Create or replace a table. key_partitions: if not 0, it also gets `key_partition`, the partition of its `key` among so many."""

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query, which are few."""

    def arrow(self, query: str) -> pa.Table:
        """Return the rows of a query, which are few."""

    def comparable(self, value: str, kind: str) -> str:
        """Return a value of a type, named as in DuckDB, so that two can be compared."""


def one_row(tables: CheckTables, query: str) -> tuple[Any, ...]:
    """Return the row of a query that has one, such as an aggregate without groups."""
    (row,) = tables.rows(query)
    return row


class DuckDbTables:
    """Tables of DuckDB; see CheckTables."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def create(self, name: str, query: str, key_partitions: int = 0) -> None:
        """See CheckTables."""
        if key_partitions:
            query = f"SELECT *, {KEY_PARTITION}(key, {key_partitions}) AS key_partition FROM ({query})"
        self.connection.execute(f"CREATE OR REPLACE TABLE {name} AS {query}")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """See CheckTables."""
        return self.connection.execute(query).fetchall()

    def arrow(self, query: str) -> pa.Table:
        """See CheckTables."""
        return self.connection.execute(query).fetch_arrow_table()

    def comparable(self, value: str, kind: str) -> str:
        """See CheckTables."""
        del kind
        return value
