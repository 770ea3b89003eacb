"""The page of tables: the columns of the lake's Delta tables, and of the views that `./foldlake sql` adds."""

from collections.abc import Iterable
from typing import Any

from cli.documentation.reference.markdown import code, page, sentence, table
from include.declarations.event_table import ADDED_COLUMNS
from include.declarations.load import load_catalog
from include.declarations.topic_tables import TopicTable
from include.lake.sql_tables import HISTORY_COLUMNS
from include.lake.tables import table_fields
from include.quality.results import COLUMNS

ABOUT = """The lake has these Delta tables below `FOLDLAKE_LAKE_DIR`. Each column has its meaning as a comment in the table, too.
[The lake](../lake.md) describes how the tables are written, [Query in SQL](../analysts.md) how to query them.

A field that is added to a state or an event becomes a further column. The type of a column never changes."""
READ_MODEL = """One row for each key of a read model: the key, the fields of the state, and the position of the newest event.
This is the table of `balance`; the first column and the last four are the same for every read model."""
TOPIC = """One row for each event of a topic whose events read models fold. This is the table of the topic `balance`; its columns are the type of
the event, the fields of all event types without the personal ones, and the last three."""
DECLARED = (
    "One row for each event of a declared event table: the fields of the event type, and these columns."
)
QUALITY = "One row for each expectation of each quality check."
HISTORY = "A view of DuckDB, one row for each commit of a table."
TIMES = {"timestamp-millis": "timestamp", "timestamp-micros": "timestamp", "date": "date"}


def tables_page() -> str:
    """Return the page, with the tables of `balance`."""
    catalog = load_catalog(())
    model = catalog.models["balance"]
    return page(
        "Tables",
        ABOUT,
        _section(
            "A read model: `<model>`", READ_MODEL, [(f.name, f.avro_type, f.doc) for f in table_fields(model)]
        ),
        _section(
            "The events of a topic: `events/<topic>`",
            TOPIC,
            [(c.name, c.avro_type, c.doc) for c in TopicTable(model.events).columns],
        ),
        _section(
            "A declared event table: `<name>`",
            DECLARED,
            [(c.name, c.avro_type, c.doc) for c in ADDED_COLUMNS],
        ),
        _section(
            "Results of checks: `_quality`", QUALITY, [(name, *column) for name, column in COLUMNS.items()]
        ),
        _section(
            "Commits: `<table>_history`",
            HISTORY,
            [(name, *column) for name, column in HISTORY_COLUMNS.items()],
        ),
    )


def _section(title: str, about: str, columns: Iterable[tuple[str, Any, str]]) -> str:
    rows = [(code(name), code(_type(kind)), sentence(doc)) for name, kind, doc in columns]
    return "\n\n".join([f"## {title}", about, table(("Column", "Type", "Meaning"), rows)])


def _type(avro: Any) -> str:  # noqa: ANN401 - JSON
    """Return the type of a column, in the words of SQL, from that of its Avro field."""
    if isinstance(avro, list):
        return _type(next(one for one in avro if one != "null"))
    if not isinstance(avro, dict):
        return str(avro)
    logical = avro.get("logicalType", "")
    if logical == "decimal":
        return f"decimal({avro['precision']},{avro.get('scale', 0)})"
    return TIMES.get(logical, str(logical or _type(avro["type"])))
