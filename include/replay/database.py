"""The database of a check: DuckDB with limited memory, which spills into a folder of temporary files; and the digest of rows in it.

Events are in a file, compressed: they are many, and are written once. All other tables are in memory, where they are written in a third of the time.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import duckdb

from include.lake.sql_tables import extension_folder, quoted, setup_statements
from include.quality.verified_tag import TableDigest
from include.scratch import scratch_folder
from include.settings import Settings

# DuckDB's hash of a row may change with its release.
ENGINE = f"duckdb {duckdb.__version__}"
# The name of the database of events.
EVENT_DATABASE = "log"


@contextmanager
def check_database(settings: Settings) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database; what does not fit into memory is in this process's folder of temporary files."""
    with scratch_folder(settings.home / "jobs") as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{settings.lake.driver_memory_mb // 2}MB",
            "temp_directory": str(folder / "spilled"),
            "preserve_insertion_order": "false",
            # To verify the signature of the Delta extension takes longer than an incremental check has. It is a file of a Python package, as
            # trusted as its code; no other extension can be installed.
            "allow_unsigned_extensions": "true",
            "autoinstall_known_extensions": "false",
        }
        with closing(duckdb.connect(config=config)) as connection:
            for statement in setup_statements(extension_folder(), ()):
                connection.execute(statement)
            connection.execute("SET python_enable_replacements = false")
            connection.execute(f"ATTACH {quoted(folder / 'events.duckdb')} AS {EVENT_DATABASE}")
            connection.execute(f"SET search_path = 'memory.main,{EVENT_DATABASE}.main'")
            yield connection


def digest_of(connection: duckdb.DuckDBPyConnection, rows: str, row_hash: str) -> TableDigest:
    """Return the digest of rows. rows: what follows FROM in SQL. row_hash: the expression of a row's hash."""
    row = connection.execute(
        f"SELECT count(*), coalesce(sum(CAST({row_hash} AS HUGEINT)), 0) FROM {rows}"
    ).fetchone()
    assert row is not None  # noqa: S101 - an aggregate without groups has one row
    return TableDigest(int(row[0]), int(row[1]))
