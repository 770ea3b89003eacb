"""`./foldlake lake`: the Delta tables, their lag and their history."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from include.lake.status import LakeCommit, LakeStatus

MEGABYTE = 1e6


def run(
    read_model: Annotated[str, typer.Argument(help="A read model. Default: all read models.")] = "",
    newest: Annotated[
        int, typer.Option("-n", "--newest", min=1, help="Number of commits to show per table.")
    ] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")] = False,
) -> None:
    """Show the Delta table of each read model: path, size, lag and newest commits.

    A table is complete up to the offsets that the stream had committed at the last compaction. All later events count
    as lag, although the table may contain some of them. docs/lake.md shows how to query the tables.

    Examples:
      ./foldlake lake

      ./foldlake lake balance -n 50

      ./foldlake lake --json
    """
    import json
    from dataclasses import asdict

    from include.declarations.read_model import load_read_models
    from include.declarations.read_model import read_model as declared
    from include.lake.status import lake_status
    from include.lake.tables import table_path
    from include.settings import Settings

    settings = Settings()
    folder = settings.declaration_folders
    models = [declared(read_model, folder)] if read_model else list(load_read_models(folder).values())
    found = {
        model.name: lake_status(settings.lake_root, settings.kafka.bootstrap_servers, model, newest)
        for model in models
    }
    if as_json:
        tables = [None if status is None else asdict(status) for status in found.values()]
        print(json.dumps([table for table in tables if table], indent=2, default=str))
        return
    for name, status in found.items():
        if status is None:
            print(
                f"{name}: no table yet at {table_path(settings.lake_root, name)}; `./foldlake compact` creates it"
            )
        else:
            print("\n".join(to_lines(status)))


def to_lines(status: "LakeStatus") -> list[str]:
    """Return a table's figures, then its history, newest first, as lines."""
    from cli.status import duration

    version = "no version yet" if status.version is None else f"version {status.version}"
    age = "never" if status.newest_age_s is None else f"{duration(round(status.newest_age_s))} ago"
    behind = "unknown: Kafka does not answer" if status.events_behind is None else f"{status.events_behind:,}"
    offsets = ", ".join(f"{partition}: {offset}" for partition, offset in status.complete_up_to.items())
    lines = [
        f"{status.read_model}: {version}",
        f"  table           {status.path}",
        f"  rows            {status.rows:,}",
        f"  files           {status.files:,}, {status.bytes / MEGABYTE:,.1f} MB",
        f"  brought up      {age}, Delta version {status.delta_version}",
        f"  complete up to  {offsets or 'not known yet'}  (source partition: offset)",
        f"  events behind   {behind}",
        "  Delta version  when (UTC)           operation     read-model version",
    ]
    return lines + [f"  {_line(commit)}".rstrip() for commit in status.history]


def _line(commit: "LakeCommit") -> str:
    operation, version = (
        (commit.operation.lower(), "")
        if commit.tag is None
        else (commit.tag.operation, str(commit.tag.version))
    )
    return f"{commit.delta_version:<13}  {commit.committed_at:%Y-%m-%d %H:%M:%S}  {operation:<12}  {version}"
