"""The event table `trend` in the lake: reads its line items with DuckDB."""

from pathlib import Path

import duckdb
import duckdb_ext

from demo.pos.dataset import SYSTEM
from include.declarations.event_table import EventTable
from include.declarations.load import load_catalog


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
