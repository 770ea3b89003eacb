"""The database of a check: DuckDB with limited memory, which spills into a folder of temporary files."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import duckdb

from include.lake.sql_tables import extension_folder, setup_statements
from include.scratch import scratch_folder
from include.settings import Settings


@contextmanager
def check_database(settings: Settings) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database whose tables are in memory as far as they fit, and otherwise in this process's folder of temporary files."""
    with scratch_folder(settings.home / "jobs") as folder:
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{settings.lake.driver_memory_mb // 2}MB",
            "temp_directory": str(folder / "spilled"),
            "preserve_insertion_order": "false",
        }
        with closing(duckdb.connect(str(folder / "check.duckdb"), config=config)) as connection:
            for statement in setup_statements(extension_folder(), ()):
                connection.execute(statement)
            connection.execute("SET python_enable_replacements = false")
            yield connection
