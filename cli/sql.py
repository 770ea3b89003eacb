"""`./foldlake sql`: query the lake's tables in SQL."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from include.lake.sql_tables import SqlTable

START_FILE = "sql/start.sql"


class OutputFormat(StrEnum):
    """How the result of a query is written."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def run(
    query: Annotated[
        str, typer.Argument(help="The query. Default: standard input, or a prompt on a terminal.")
    ] = "",
    output_format: Annotated[
        OutputFormat, typer.Option("--format", help="Format of the result.")
    ] = OutputFormat.TABLE,
    output: Annotated[Path | None, typer.Option(help="Write the result to this file.")] = None,
) -> None:
    """Query the lake in SQL, with DuckDB: states of read models, their history, events, and results of quality checks.

    Without a query, it starts DuckDB's shell with the tables. Statements end with `;`, `.help` lists further commands, and `.quit` ends it.
    It reads files only: the stack need not run. docs/analysts.md has examples.

    Tables: each read model (`balance`), the events of each topic (`events_balance`), declared event tables, and `_quality`. A dash in a name is
    an underscore in SQL. The commits of a table are in `<table>_history`.

    Examples:
      ./foldlake sql

      ./foldlake sql "select key, amount from balance order by amount desc limit 5"

      ./foldlake sql "from events_balance limit 10" --format csv

      ./foldlake sql "from balance" --format parquet --output balance.parquet
    """
    import sys

    from include.lake.sql_tables import sql_tables
    from include.settings import Settings

    settings = Settings()
    tables = sql_tables(settings.lake_root)
    if not query and sys.stdin.isatty():
        _start_shell(settings.home, tables)
    from cli.display.query_output import write_result

    write_result(settings, tables, query or sys.stdin.read(), str(output_format), output)


def _start_shell(home: Path, tables: "Sequence[SqlTable]") -> None:
    """Replace this process by DuckDB's shell."""
    import os
    import sys

    from include.files import write_atomically
    from include.lake.sql_tables import extension_folder, overview, setup_statements

    start = home / START_FILE
    statements = setup_statements(extension_folder(), tables)
    write_atomically(start, "".join(f"{statement};\n" for statement in statements))
    shell = Path(sys.executable).with_name("duckdb")
    print(overview(tables), flush=True)
    os.execv(shell, [str(shell), "-cmd", f".read '{start}'"])  # noqa: S606 - no shell is wanted
