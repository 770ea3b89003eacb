"""`./foldlake versions`: every version of every read model, and its stage."""

from typing import TYPE_CHECKING, Annotated

import typer

from cli.display.documents import NamesOption
from include.nodes.field_names import FieldNames

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.table import Table

    from include.versions.version_record import ReadModelVersions, Version

COLORS = {"live": "green", "candidate": "cyan", "building": "cyan", "previous": "yellow"}


def run(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    names: NamesOption = FieldNames.CAMEL,
) -> None:
    """List the versions of every read model: stage, fold revision, creation time, reason, reason of a rollback, and retention.

    Examples:
      ./foldlake versions

      ./foldlake versions --json
    """
    from dataclasses import asdict

    from rich.console import Console

    from cli.display.documents import print_document
    from include.settings import Settings
    from include.versions.registry import VersionRegistry

    with VersionRegistry(Settings().kafka_connection) as registry:
        records = registry.read()
    if as_json:
        print_document({name: asdict(record) for name, record in records.items()}, names)
        return
    Console().print(versions_table(records.values()))


def versions_table(records: "Iterable[ReadModelVersions]") -> "Table":
    """Return a line for each version. Times are in UTC."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("read model", "version", "stage", "fold", "created", "reason"):
        table.add_column(
            column,
            justify="right" if column in ("version", "fold") else "left",
            overflow="fold",
            no_wrap=column not in ("read model", "fold", "reason"),
        )
    for record in sorted(records, key=lambda one: one.read_model):
        for version in record.versions:
            table.add_row(
                record.read_model,
                str(version.number),
                Text(version.stage.value, style=COLORS.get(version.stage.value, "dim")),
                _fold(version),
                _minute(version.created_at),
                Text("; ".join(_reasons(version))),
            )
    return table


def _reasons(version: "Version") -> "Iterator[str]":
    """Yield why a version was built, why it was made live again, and until when it is kept."""
    yield version.reason
    if version.rollback_reason:
        yield f"live again: {version.rollback_reason}"
    if version.stage.value == "previous" and version.retire_after:
        yield f"kept until {_minute(version.retire_after)}"


def _minute(time: str) -> str:
    return time[:16].replace("T", " ")


def _fold(version: "Version") -> str:
    """Return the version's fold revision, and what it folds if that is not the whole topic that the read model declares."""
    source = f" of {version.source_topic}" if version.source_topic else ""
    starts = f" from {','.join(map(str, version.start_offsets))}" if version.start_offsets else ""
    return f"{version.fold_revision}{source}{starts}"
