"""DuckDB with the lake's tables, in this process."""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import duckdb_ext

from include.lake.sql_tables import SqlTable, setup_statements, sql_tables


def extension_folder() -> Path:
    """Return the folder of DuckDB's extensions: the package duckdb-ext-delta has the one for Delta."""
    return Path(next(iter(duckdb_ext.__path__))) / "extensions"


def connect(lake_root: str, tables: Sequence[SqlTable] | None = None) -> duckdb.DuckDBPyConnection:
    """Return a connection in memory with the tables of a lake, or with these.

    Raises NoLakeError when the lake has none.
    """
    found = sql_tables(lake_root) if tables is None else tables
    connection = duckdb.connect()
    # A name that is no table must not be that of a variable of this program.
    connection.execute("SET python_enable_replacements = false")
    for statement in setup_statements(extension_folder(), found):
        connection.execute(statement)
    return connection
