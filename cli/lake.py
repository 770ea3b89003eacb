"""`./foldlake lake`: the Delta tables, their lag and their history."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from include.lake.event_table_status import AppendCommit, EventTableStatus
    from include.lake.status import LakeCommit, LakeStatus
    from include.settings import Settings

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
    waits = {one: waits for one, status in found.items() if (waits := _waits_for(settings, status))}
    if as_json:
        tables = [
            asdict(status) | {"waits_for": waits.get(one)}
            for one, status in found.items()
            if status is not None
        ]
        print(json.dumps(tables, indent=2, default=str))
        return
    for one, status in found.items():
        if status is None:
            print(
                f"{one}: no table yet at {table_path(settings.lake_root, one)}; `./foldlake compact` creates it"
            )
        else:
            print("\n".join(_lines(status, waits.get(one, ""))))


def _waits_for(settings: "Settings", status: "LakeStatus | EventTableStatus | None") -> str:
    """Return what a table that does not contain the live version waits for; empty for any other table."""
    from include.airflow.client import AirflowUnavailableError
    from include.airflow.login import airflow_api
    from include.airflow.runs.lake_queue import waits_for
    from include.lake.status import LakeStatus

    if not isinstance(status, LakeStatus) or status.follows_live:
        return ""
    try:
        return waits_for(airflow_api(settings.home, settings.airflow), status.read_model)
    except (AirflowUnavailableError, OSError, ValueError, KeyError):
        return "Airflow, which does not answer: no task replaces the table meanwhile"


def _lines(status: "LakeStatus | EventTableStatus", waits_for: str) -> list[str]:
    from include.lake.status import LakeStatus

    return to_lines(status, waits_for) if isinstance(status, LakeStatus) else event_table_lines(status)


def to_lines(status: "LakeStatus", waits_for: str = "") -> list[str]:
    """Return the figures of a read model's table, then its history, newest first, as lines.

    waits_for: what replaces the table, if it does not contain the live version.
    """
    version = "no version yet" if status.version is None else f"version {status.version}"
    if not status.follows_live:
        version += f"; version {status.live_version} is live"
    offsets = ", ".join(f"{partition}: {offset}" for partition, offset in status.complete_up_to.items())
    lines = [
        f"{status.read_model}: {version}",
        *([f"  waits for       {waits_for}"] if waits_for else []),
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
    from cli.display.status_tables import duration

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
