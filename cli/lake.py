"""`./foldlake lake`: the Delta tables, their lag and their history."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli.display.documents import NamesOption
from include.nodes.field_names import FieldNames

if TYPE_CHECKING:
    from collections.abc import Callable

    from include.lake.status import EventTableStatus, ReadModelStatus, TableStatus
    from include.lake.tagged_table import TableCommit
    from include.lake.tags import LakeTagT
    from include.settings import Settings

MEGABYTE = 1e6


def run(
    name: Annotated[str, typer.Argument(help="A read model or an event table. Default: all of them.")] = "",
    newest: Annotated[
        int, typer.Option("-n", "--newest", min=1, help="Number of commits to show per table.")
    ] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")] = False,
    names: NamesOption = FieldNames.CAMEL,
) -> None:
    """Show the Delta table of each read model and of each event table: path, size, lag and newest commits.

    The table of a read model is complete up to the offsets that the stream had committed at the last compaction. All later events
    count as lag, although the table may contain some of them. docs/analysts.md shows how to query the tables.

    Examples:
      ./foldlake lake

      ./foldlake lake balance -n 50

      ./foldlake lake --json
    """
    import sys

    from cli.display.documents import print_document
    from cli.servers import KAFKA, is_up
    from include.declarations.topic_tables import load_lake_catalog
    from include.lake.status import event_table_status, read_model_status
    from include.lake.tables import table_path
    from include.settings import Settings

    settings = Settings()
    # The tables can be read without Kafka; only the lag is then unknown.
    kafka = settings.kafka_connection if is_up(settings, KAFKA) else None
    catalog = load_lake_catalog(settings)
    catalog.require_table(name)
    found: dict[str, ReadModelStatus | EventTableStatus | None] = {
        one: read_model_status(settings.lake_root, kafka, model, newest)
        for one, model in catalog.models.items()
        if name in {"", one}
    }
    found |= {
        one: event_table_status(settings.lake_root, kafka, table, newest)
        for one, table in catalog.event_tables.items()
        if name in {"", one}
    }
    if kafka is None:
        print(
            f"Kafka does not respond at {settings.kafka_connection}: the lag of the tables is unknown. `./foldlake up` starts the stack.",
            file=sys.stderr,
        )
    waits = {one: waits for one, status in found.items() if (waits := _waits_for(settings, status))}
    if as_json:
        tables = [
            status.as_json() | {"waits_for": waits.get(one)}
            for one, status in found.items()
            if status is not None
        ]
        print_document(tables, names)
        return
    for one, status in found.items():
        if status is None:
            print(
                f"{one}: no table yet at {table_path(settings.lake_root, one)}; `./foldlake compact` creates it"
            )
        else:
            print("\n".join(_lines(status, waits.get(one, ""))))


def _waits_for(settings: "Settings", status: "ReadModelStatus | EventTableStatus | None") -> str:
    """Return what a table that does not contain the live version waits for; empty for any other table."""
    from include.airflow.client import AirflowUnavailableError, airflow_api
    from include.airflow.lake_runs import waits_for
    from include.lake.status import ReadModelStatus

    if not isinstance(status, ReadModelStatus) or status.follows_live:
        return ""
    try:
        return waits_for(airflow_api(settings.home, settings.airflow), status.table.name)
    except (AirflowUnavailableError, OSError, ValueError, KeyError):
        return "Airflow, which does not respond: no task replaces the table meanwhile"


def _lines(status: "ReadModelStatus | EventTableStatus", waits_for: str) -> list[str]:
    from include.lake.status import EventTableStatus

    return (
        event_table_lines(status)
        if isinstance(status, EventTableStatus)
        else read_model_lines(status, waits_for)
    )


def read_model_lines(status: "ReadModelStatus", waits_for: str = "") -> list[str]:
    """Return the figures of a read model's table, then its history, newest first, as lines.

    waits_for: what replaces the table, if it does not contain the live version.
    """
    table = status.table
    version = "no version yet" if table.version is None else f"version {table.version}"
    if not status.follows_live:
        version += f"; version {status.live_version} is live"
    return [
        f"{table.name}: {version}",
        *([f"  waits for       {waits_for}"] if waits_for else []),
        *_size(table),
        f"  complete up to  {_offsets(table) or 'not known yet'}  (source partition: offset)",
        f"  events behind   {_behind(table)}",
        *_history(table, "read-model version", lambda tag: str(tag.version)),
    ]


def event_table_lines(status: "EventTableStatus") -> list[str]:
    """Return the figures of an event table, then its history, newest first, as lines."""
    table, months = status.table, list(status.months)
    lost = f"  lost            {status.lost:,} records, deleted before they were read"
    return [
        f"{table.name}: event table of {status.source_topic}",
        *_size(table),
        f"  months          {len(months)}" + (f", {months[0]} to {months[-1]}" if months else ""),
        f"  appended up to  {_offsets(table) or 'nothing yet'}  (partition: offset)",
        f"  records behind  {_behind(table)}",
        *([f"  unreadable      {status.unreadable:,} records of the topic"] if status.unreadable else []),
        *([lost] if status.lost else []),
        *_history(table, "rows", lambda tag: f"{tag.rows:,}"),
    ]


def _size(table: "TableStatus[LakeTagT]") -> list[str]:
    from cli.display.status_tables import duration

    age = "never" if table.newest_age_s is None else f"{duration(round(table.newest_age_s))} ago"
    rows = "unknown: there are files without statistics" if table.rows is None else f"{table.rows:,}"
    return [
        f"  table           {table.path}",
        f"  rows            {rows}",
        f"  files           {table.files:,}, {table.bytes / MEGABYTE:,.1f} MB",
        f"  updated         {age}, Delta version {table.delta_version}",
    ]


def _offsets(table: "TableStatus[LakeTagT]") -> str:
    return ", ".join(f"{partition}: {offset}" for partition, offset in table.complete_up_to.items())


def _behind(table: "TableStatus[LakeTagT]") -> str:
    return "unknown: Kafka does not respond" if table.behind is None else f"{table.behind:,}"


def _history(
    table: "TableStatus[LakeTagT]", last_column: str, last: "Callable[[LakeTagT], str]"
) -> list[str]:
    """Return a line for each commit; the last column is empty for a commit of another program."""
    lines = [_line(commit, "" if commit.tag is None else last(commit.tag)) for commit in table.history]
    return [f"  Delta version  when (UTC)           operation     {last_column}", *lines]


def _line(commit: "TableCommit[LakeTagT]", last: str) -> str:
    operation = commit.operation.lower() if commit.tag is None else commit.tag.operation
    return f"  {commit.delta_version:<13}  {commit.committed_at:%Y-%m-%d %H:%M:%S}  {operation:<12}  {last}".rstrip()
