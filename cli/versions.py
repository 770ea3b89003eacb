"""`./foldlake versions`: every version of every read model, and its stage."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from include.versions.version_record import Version

COLORS = {"live": "green", "candidate": "cyan", "building": "cyan", "previous": "yellow"}


def run(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """List the versions of every read model: stage, fold revision, creation time, reason and retention.

    Examples:
      ./foldlake versions

      ./foldlake versions --json
    """
    import json
    from dataclasses import asdict

    from rich.console import Console
    from rich.table import Table

    from include.settings import Settings
    from include.versions.registry import VersionRegistry

    with VersionRegistry(Settings().kafka.bootstrap_servers) as registry:
        records = registry.read()
    if as_json:
        print(json.dumps({name: asdict(record) for name, record in records.items()}, indent=2))
        return
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("read model", "version", "stage", "fold", "created", "reason", "kept until"):
        table.add_column(column, justify="right" if column in ("version", "fold") else "left")
    for name, record in sorted(records.items()):
        for version in record.versions:
            color = COLORS.get(version.stage.value, "dim")
            table.add_row(
                name,
                str(version.number),
                f"[{color}]{version.stage.value}[/{color}]",
                _fold(version),
                version.created_at[:19].replace("T", " "),
                version.reason,
                version.retire_after[:19].replace("T", " ") if version.stage.value == "previous" else "",
            )
    Console().print(table)


def _fold(version: "Version") -> str:
    """Return the version's fold revision, and what it folds if that is not the whole topic that the read model declares."""
    source = f" of {version.source_topic}" if version.source_topic else ""
    starts = f" from {','.join(map(str, version.start_offsets))}" if version.start_offsets else ""
    return f"{version.fold_revision}{source}{starts}"
