"""Runs a query of the lake and writes its result as a table, CSV, JSON or Parquet."""

import difflib
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from include.errors import FoldlakeError
from include.lake.sql_tables import HISTORY_SUFFIX, SqlTable, connect, listing, sql_name
from include.settings import Settings
from query_api.http.json_text import dumps

# Types that `dumps` writes by itself.
PLAIN = (bool, int, float, str, bytes, date, Decimal)
# Rows of a result that are in memory at once.
BATCH_ROWS = 10_000
COPY = {"csv": "(FORMAT csv, HEADER)", "parquet": "(FORMAT parquet)"}
SHOW_TABLES = re.compile(r"\s*show\s+tables\s*;?\s*", re.IGNORECASE)
MISSING_TABLE = re.compile(r'Table with name "?(?P<name>.+?)"? does not exist')
# Of a table: a longer result is shown by its first and last rows.
SHOWN_ROWS = 40


class QueryError(FoldlakeError):
    """DuckDB cannot run a query, or its result cannot be written."""


def write_result(
    settings: Settings, tables: Sequence[SqlTable], query: str, output_format: str, output: Path | None
) -> None:
    """Run the statements of a query, and write the result of the last one to a file, or to standard output.

    Raises QueryError.
    """
    if output_format == "parquet" and output is None and sys.stdout.isatty():
        raise QueryError(
            "Parquet is binary: give `--output FILE`, or redirect standard output to a file or a program."
        )
    with connect(settings.lake_root, tables) as connection:
        try:
            result = _run(connection, tables, query)
            if result is not None:
                _write(result, output_format, output)
        except duckdb.Error as error:
            raise QueryError(_explained(settings, tables, error, query)) from error
        except OSError as error:
            raise QueryError(
                f"The result cannot be written to {output or 'standard output'}: {error.strerror}."
            ) from error


def _run(
    connection: duckdb.DuckDBPyConnection, tables: Sequence[SqlTable], query: str
) -> duckdb.DuckDBPyRelation | None:
    """Run all statements but the last, and return the last one's result; None if it has none."""
    statements = connection.extract_statements(query)
    if not statements:
        raise QueryError('There is no query: give one as the argument, such as "from balance limit 5".')
    *others, last = statements
    for statement in others:
        connection.execute(statement)
    # Each table has a database of its own, for which DuckDB lists only the history.
    return connection.sql(listing(tables) if SHOW_TABLES.fullmatch(last.query) else last.query)


def _write(
    result: duckdb.DuckDBPyRelation,
    output_format: str,
    output: Path | None,
) -> None:
    if output_format == "table":
        _write_table(result, output)
        return
    with tempfile.TemporaryDirectory(prefix="foldlake-sql-") as folder:
        path = Path(folder) / "result"
        if output_format == "json":
            with path.open("w", encoding="utf-8") as file:
                file.writelines(_json_lines(result))
        else:
            target = str(path).replace("'", "''")
            result.query("result", f"COPY result TO '{target}' {COPY[output_format]}")
        if output is not None:
            shutil.copyfile(path, output)
        else:
            with path.open("rb") as written:
                shutil.copyfileobj(written, sys.stdout.buffer)
            sys.stdout.buffer.flush()


def _write_table(result: duckdb.DuckDBPyRelation, output: Path | None) -> None:
    width = shutil.get_terminal_size().columns
    if output is None:
        result.show(max_width=width, max_rows=SHOWN_ROWS)
        return
    text = str(result)
    output.write_text(f"{text}\n", encoding="utf-8")


def _json_lines(result: duckdb.DuckDBPyRelation) -> Iterator[str]:
    """Yield one JSON array, an object for each row in a line of its own; decimals are numbers with all of their places."""
    names, before = result.columns, "["
    while rows := result.fetchmany(BATCH_ROWS):
        for row in rows:
            yield f"{before}\n{dumps({name: _for_json(value) for name, value in zip(names, row, strict=True)})}"
            before = ","
    yield "[]\n" if before == "[" else "\n]\n"


def _for_json(value: Any) -> object:  # noqa: ANN401 - of any of DuckDB's types
    """Return a value that `dumps` accepts: what it does not write by itself is its text."""
    if isinstance(value, dict):
        return {str(name): _for_json(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_for_json(inner) for inner in value]
    return value if value is None or isinstance(value, PLAIN) else str(value)


def _explained(settings: Settings, tables: Sequence[SqlTable], error: duckdb.Error, query: str) -> str:
    """Return DuckDB's message; if a table does not exist, the name that it has, when it is created, or which tables exist."""
    text = str(error).strip()
    missing = MISSING_TABLE.search(text)
    if not isinstance(error, duckdb.CatalogException) or missing is None:
        return text
    name = missing["name"]
    qualified = re.search(rf'("[^"]+"|\w+)\s*[.]\s*"?{re.escape(name)}"?(?!\w)', query, re.IGNORECASE)
    parts = [name] if qualified is None else [qualified[1].strip('"'), name]
    return _why_missing(settings, {table.name for table in tables}, parts)


def _why_missing(settings: Settings, existing: set[str], parts: list[str]) -> str:
    """Say why there is no table of this name. parts: the schema, if the query names one, and the table."""
    from include.declarations.topic_tables import load_lake_catalog

    catalog = load_lake_catalog(settings)
    declared = {sql_name(name): name for name in catalog.names}
    shown, history = ".".join(parts), ""
    # As in the folders of the lake, then without the schema.
    for candidate in ("_".join(map(sql_name, parts)).casefold(), sql_name(parts[-1]).casefold()):
        base = candidate.removesuffix(HISTORY_SUFFIX)
        history = candidate.removeprefix(base)
        if base in existing:
            return f"There is no table {shown}: in SQL, its name is {base}{history}, without a schema."
        if base in declared:
            return (
                f"lake/{declared[base]} does not exist yet: the first compaction creates it. Hint: `./foldlake compact {declared[base]}`, while "
                "the stack runs."
            )
    names = sorted({*existing, *(f"{name}{HISTORY_SUFFIX}" for name in existing)})
    close = difflib.get_close_matches(parts[-1], names, 1)
    hint = f" Did you mean {close[0]}?" if close else ""
    known = ", ".join(sorted(existing))
    return f"There is no table {shown}.{hint} Tables: {known}; the commits of each are in <table>{HISTORY_SUFFIX}."
