"""The lake's tables in DuckDB: each table under a name of its own, its history, and versions by time."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import duckdb_ext

from include.errors import FoldlakeError

EVENTS, QUALITY = "events", "_quality"
DELTA_LOG = "_delta_log"
# Names of DuckDB's own databases: a table of this name gets another one.
TAKEN = frozenset({"memory", "system", "temp", "main"})
LINE_WIDTH = 80
HISTORY_SUFFIX = "_history"
HISTORY = """
CREATE VIEW "{name}_history" AS
SELECT regexp_extract(filename, '([0-9]+)[.]json$', 1)::BIGINT AS delta_version,
       to_timestamp(commitInfo."timestamp" / 1000) AS committed_at,
       coalesce(tag ->> '$.operation', lower(commitInfo.operation)) AS operation,
       (tag ->> '$.version')::INTEGER AS model_version,
       coalesce(tag -> '$.complete_up_to', tag -> '$.offsets') AS complete_up_to
FROM (SELECT *, if(json_valid(commitInfo."userMetadata"), commitInfo."userMetadata", NULL)::JSON AS tag
      FROM read_json('{log}/*.json', format = 'newline_delimited', records = true, filename = true,
                     columns = {{commitInfo: 'STRUCT("timestamp" BIGINT, operation VARCHAR, "userMetadata" VARCHAR)'}}))
WHERE commitInfo IS NOT NULL
ORDER BY delta_version
"""
HISTORY_COLUMNS = {
    "delta_version": ("bigint", "Version of the Delta table."),
    "committed_at": ("timestamp with time zone", "Time of the commit."),
    "operation": (
        "varchar",
        "Why Foldlake has written it, such as compaction or promotion; else Delta's own operation.",
    ),
    "model_version": (
        "integer",
        "Version of the read model that the table contains since then; null for other tables.",
    ),
    "complete_up_to": (
        "json",
        "Source partition and offset: each event below it is in the table. For event tables, the offset of the next record.",
    ),
}
"""The columns of a history: their types and meanings."""
# AT (VERSION => NULL) would crash DuckDB 1.4, so that a time before the first content is an error here. A created table has no rows yet.
VERSION_AS_OF = """
CREATE MACRO version_as_of(name, moment) AS (
    SELECT coalesce(max(delta_version), error('The history of ' || name || ' begins after ' || moment || '.'))
    FROM query_table(name || '_history') WHERE committed_at <= moment::TIMESTAMPTZ AND operation <> 'create table'
)
"""


class NoLakeError(FoldlakeError):
    """There is no lake that DuckDB can read."""


@dataclass(frozen=True)
class SqlTable:
    """A Delta table: its name in SQL, and its folder."""

    name: str
    path: Path


def sql_name(table: str) -> str:
    """Return the name in SQL of a table of the lake: `order-location` is `order_location`, `events/trips` is `events_trips`."""
    name = re.sub(r"\W", "_", table)
    return f"{name}_table" if name.casefold() in TAKEN else name


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


def sql_tables(lake_root: str) -> list[SqlTable]:
    """Return the tables that exist in the lake, read models and declared event tables first; opens none of them.

    Raises NoLakeError when the lake does not exist, or is on a file system that is not mounted here.
    """
    if "://" in lake_root.removeprefix("file://"):
        raise NoLakeError(
            f"The lake {lake_root} is not on a file system of this machine, so this command cannot list its tables: use DuckDB with an "
            "extension for this storage (docs/analysts.md)."
        )
    root = Path(lake_root.removeprefix("file://"))
    folders = [path for path in _tables_in(root) if not path.name.startswith("_")]
    folders += _tables_in(root / EVENTS)
    folders += [path for path in _tables_in(root) if path.name == QUALITY]
    if not folders:
        raise NoLakeError(
            f"There is no table in {root} yet. Hint: `./foldlake up` starts the stack; the first compaction creates the tables, or "
            "`./foldlake compact` does now."
        )
    found: dict[str, SqlTable] = {}
    for path in folders:
        name = sql_name(str(path.relative_to(root)))
        found.setdefault(name, SqlTable(name, path))
    return list(found.values())


def extension_folder() -> Path:
    """Return the folder of DuckDB's extensions: the package duckdb-ext-delta has the one for Delta."""
    return Path(next(iter(duckdb_ext.__path__))) / "extensions"


def setup_statements(extensions: Path, tables: Iterable[SqlTable]) -> Iterator[str]:
    """Yield the statements that prepare a connection: tables are attached for reading only, and opened by the queries that use them.

    extensions: the folder of DuckDB's extensions, which has the one for Delta.
    """
    yield f"SET extension_directory = {quoted(extensions)}"
    yield "LOAD delta"
    yield "SET TimeZone = 'UTC'"
    # Not views: to attach opens nothing, so a damaged table fails only its own queries, and `AT (VERSION => n)` works.
    for table in tables:
        yield f'ATTACH {quoted(table.path)} AS "{table.name}" (TYPE delta, READ_ONLY)'
        yield HISTORY.format(name=table.name, log=str(table.path / DELTA_LOG).replace("'", "''")).strip()
    yield VERSION_AS_OF.strip()


def listing(tables: Iterable[SqlTable]) -> str:
    """Return the query of the names of the tables and of their histories."""
    names = ", ".join(
        f"({quoted(table.name + suffix)})" for table in tables for suffix in ("", HISTORY_SUFFIX)
    )
    return f"SELECT name FROM (VALUES {names}) AS tables(name) ORDER BY name"  # noqa: S608 - names of folders, quoted


def overview(tables: Collection[SqlTable]) -> str:
    """Return the names of the tables, in lines of 80 characters at most, and how to see their history."""
    lines, line = [], "Tables:"
    for table in tables:
        if len(line) + len(table.name) + 1 > LINE_WIDTH:
            lines.append(line)
            line = " " * 7
        line += f" {table.name}"
    return "\n".join(
        [
            *lines,
            line,
            "Each has its commits in <table>_history. DESCRIBE <table>; shows its columns,",
            "SHOW ALL TABLES; those of all.",
        ]
    )


def quoted(value: object) -> str:
    """Return a value as text in SQL."""
    escaped = str(value).replace("'", "''")
    return f"'{escaped}'"


def _tables_in(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob(f"*/{DELTA_LOG}"))
