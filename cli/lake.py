"""`./foldlake lake`: the Delta tables, their lag and their history."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from include.lake.event_table_status import AppendCommit, EventTableStatus
    from include.lake.status import LakeCommit, LakeStatus

MEGABYTE = 1e6


def run(
    name: Annotated[str, typer.Argument(help="A read model or an event table. Default: all of them.")] = "",
    newest: Annotated[
        int, typer.Option("-n", "--newest", min=1, help="Number of commits to show per table.")
    ] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")] = False,
) -> None:
    """Show the Delta table of each read model and of each event table: path, size, lag and newest commits.

    The table of a read model is complete up to the offsets that the stream had committed at the last compaction. All later events
    count as lag, although the table may contain some of them. docs/lake.md shows how to query the tables.

    Examples:
      ./foldlake lake

      ./foldlake lake balance -n 50

      ./foldlake lake --json
    """
    import json
    import sys
    from dataclasses import asdict

    from cli.servers import KAFKA, is_up
    from include.declarations.topic_tables.selection import load_lake_catalog
    from include.lake.event_table_status import event_table_status
    from include.lake.status import lake_status
    from include.lake.tables import table_path
    from include.settings import Settings

    settings = Settings()
    # The tables can be read without Kafka; only the lag is then unknown.
    servers = settings.kafka.bootstrap_servers if is_up(settings, KAFKA) else None
    catalog = load_lake_catalog(settings)
    catalog.require_table(name)
    found: dict[str, LakeStatus | EventTableStatus | None] = {
        one: lake_status(settings.lake_root, servers, model, newest)
        for one, model in catalog.models.items()
        if name in {"", one}
    }
    found |= {
        one: event_table_status(settings.lake_root, servers, table, newest)
        for one, table in catalog.event_tables.items()
        if name in {"", one}
    }
    if servers is None:
        print(
            f"Kafka does not answer at {settings.kafka.bootstrap_servers}: how far the tables are behind is unknown. `./foldlake up` starts "
            "the stack.",
            file=sys.stderr,
        )
    if as_json:
        tables = [None if status is None else asdict(status) for status in found.values()]
        print(json.dumps([table for table in tables if table], indent=2, default=str))
        return
    for one, status in found.items():
        if status is None:
            print(
                f"{one}: no table yet at {table_path(settings.lake_root, one)}; `./foldlake compact` creates it"
            )
        else:
            print("\n".join(_lines(status)))


def _lines(status: "LakeStatus | EventTableStatus") -> list[str]:
    from include.lake.status import LakeStatus

    return to_lines(status) if isinstance(status, LakeStatus) else event_table_lines(status)


def to_lines(status: "LakeStatus") -> list[str]:
    """Return the figures of a read model's table, then its history, newest first, as lines."""
    version = "no version yet" if status.version is None else f"version {status.version}"
    offsets = ", ".join(f"{partition}: {offset}" for partition, offset in status.complete_up_to.items())
    lines = [
        f"{status.read_model}: {version}",
        *_size(status),
        f"  complete up to  {offsets or 'not known yet'}  (source partition: offset)",
        f"  events behind   {_count(status.events_behind)}",
        "  Delta version  when (UTC)           operation     read-model version",
    ]
    versions = (str(commit.tag.version) if commit.tag else "" for commit in status.history)
    return lines + [_line(commit, last) for commit, last in zip(status.history, versions, strict=True)]


def event_table_lines(status: "EventTableStatus") -> list[str]:
    """Return the figures of an event table, then its history, newest first, as lines."""
    offsets = ", ".join(f"{partition}: {offset}" for partition, offset in status.offsets.items())
    months = list(status.months)
    lines = [
        f"{status.event_table}: event table of {status.source_topic}",
        *_size(status),
        f"  months          {len(months)}" + (f", {months[0]} to {months[-1]}" if months else ""),
        f"  appended up to  {offsets or 'nothing yet'}  (partition: offset)",
        f"  records behind  {_count(status.records_behind)}",
        *([f"  unreadable      {status.unreadable:,} records of the topic"] if status.unreadable else []),
        *(
            [f"  lost            {status.lost:,} records, deleted before they were read"]
            if status.lost
            else []
        ),
        "  Delta version  when (UTC)           operation     rows",
    ]
    rows = (f"{commit.tag.rows:,}" if commit.tag else "" for commit in status.history)
    return lines + [_line(commit, last) for commit, last in zip(status.history, rows, strict=True)]


def _size(status: "LakeStatus | EventTableStatus") -> list[str]:
    from cli.status import duration

    age = "never" if status.newest_age_s is None else f"{duration(round(status.newest_age_s))} ago"
    return [
        f"  table           {status.path}",
        f"  rows            {status.rows:,}",
        f"  files           {status.files:,}, {status.bytes / MEGABYTE:,.1f} MB",
        f"  brought up      {age}, Delta version {status.delta_version}",
    ]


def _count(behind: int | None) -> str:
    return "unknown: Kafka does not answer" if behind is None else f"{behind:,}"


def _line(commit: "LakeCommit | AppendCommit", last: str) -> str:
    operation = commit.operation.lower() if commit.tag is None else commit.tag.operation
    return f"  {commit.delta_version:<13}  {commit.committed_at:%Y-%m-%d %H:%M:%S}  {operation:<12}  {last}".rstrip()
