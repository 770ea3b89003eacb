"""`./foldlake quality`: check that stored records equal a replay of the events."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table

    from include.declarations.event_table import AppendedTable
    from include.quality.check import CheckRequest
    from include.quality.history import PastRun
    from include.settings import Settings

SHOWN_KEYS = 20
ValueT = TypeVar("ValueT", bound=StrEnum)


def run(  # noqa: PLR0913, PLR0917 - the options of the command
    read_model: Annotated[str, typer.Argument(help="The read model or event table.")] = "balance",
    sample: Annotated[
        bool, typer.Option("--sample/--full", help="Check a sample of the keys, or all keys.")
    ] = False,
    mode: Annotated[
        str,
        typer.Option(
            help="full; sample; or incremental: only keys with events since the last check that passed."
        ),
    ] = "",
    stores: Annotated[
        str, typer.Option(help="Stores to check: lake, nodes, changelog, staging; separated by commas.")
    ] = "lake,nodes",
    version: Annotated[
        int, typer.Option(min=0, help="Version to check, only with --now. 0: the live version.")
    ] = 0,
    from_log: Annotated[
        bool, typer.Option("--from-log", help="Read all events from the log, also those of an event table.")
    ] = False,
    now: Annotated[bool, typer.Option("--now", help="Run the check without Airflow.")] = False,
    listing: Annotated[
        bool, typer.Option("--list", help="List the latest results, without running a check.")
    ] = False,
) -> None:
    """Check a read model's stored records against a replay of the events in the log.

    Starts a run of Airflow's DAG `quality` and follows it. An event table is checked at once, without Airflow, and only --from-log applies
    to it. docs/quality.md describes the checks.

    The exit code is 0 when the check passed and 1 when it failed. It is 75 when the check could not be run, and 69 when the read model cannot be
    checked.

    Examples:
      ./foldlake quality

      ./foldlake quality balance --sample --stores nodes

      ./foldlake quality --mode incremental

      ./foldlake quality --now --from-log

      ./foldlake quality --list
    """
    from rich.console import Console

    from cli.servers import AIRFLOW, KAFKA, REGISTRY, require_up
    from include.declarations.load import read_model as declared
    from include.declarations.topic_tables import load_lake_catalog
    from include.quality.check import CheckRequest, Mode, StoreName
    from include.quality.history import last_runs
    from include.settings import Settings

    settings, console = Settings(), Console()
    if listing:
        console.print(runs_table(last_runs(settings.lake_root)))
        return
    table = load_lake_catalog(settings).event_tables.get(read_model)
    if table is not None:
        require_up(settings, (KAFKA, REGISTRY))
        raise typer.Exit(_check_event_table(console, settings, table, from_log=from_log))
    declared(read_model, settings.declaration_folders)
    chosen = _chosen("--mode", Mode, mode) if mode else Mode.SAMPLE if sample else Mode.FULL
    names = tuple(_chosen("--stores", StoreName, name.strip()) for name in stores.split(","))
    request = CheckRequest(read_model, names, chosen, "", version or None, from_log)
    require_up(settings, (KAFKA, REGISTRY) if now else (KAFKA, AIRFLOW))
    name = _now(settings, request) if now else _by_airflow(console, settings, request)
    raise typer.Exit(_show(console, settings.home, name))


def _check_event_table(
    console: "Console", settings: "Settings", table: "AppendedTable", *, from_log: bool
) -> int:
    """Check an event table, print the result, and return the exit code."""
    from include.lake.event_table_check import EventTableMissingError, check_event_table
    from include.replay.table_proof import compare_with_log

    try:
        results = (
            check_event_table(settings.lake_root, table),
            compare_with_log(settings, table, from_log=from_log),
        )
    except EventTableMissingError as error:
        console.print(str(error), style="yellow", highlight=False, markup=False, soft_wrap=True)
        return 69
    for found in results:
        color = "green" if found.is_exact else "red"
        console.print(
            f"lake/{table.name}: {found}", style=color, highlight=False, markup=False, soft_wrap=True
        )
    return 0 if all(found.is_exact for found in results) else 1


def _chosen(option: str, values: "type[ValueT]", text: str) -> "ValueT":
    """Return the value of an option; raises SettingsError, which lists the values that are allowed."""
    from include.errors import SettingsError

    try:
        return values(text)
    except ValueError as error:
        raise SettingsError(f"{option}: {error}; allowed: {', '.join(values)}.") from error


def _now(settings: "Settings", request: "CheckRequest") -> str:
    """Run the check without Airflow, and return the name of its report."""
    from dataclasses import replace
    from datetime import UTC, datetime

    from include.quality.check import checked_version
    from include.versions.registry import VersionRegistry
    from stack.launchers.direct_submit import run_check

    with VersionRegistry(settings.kafka_connection) as registry:
        checked_version(registry.read().get(request.read_model), request)
    name = f"now-{datetime.now(UTC):%Y-%m-%dT%H-%M-%S}-{request.read_model}"
    run_check(settings, replace(request, run_id=name))
    return name


def _by_airflow(console: "Console", settings: "Settings", request: "CheckRequest") -> str:
    """Run the check in Airflow, follow it, and return the name of its report."""
    from cli.display.run_display import RunToFollow, trigger_and_follow
    from include.airflow.names import QUALITY_DAG
    from include.errors import SettingsError
    from include.quality.check import check_id

    if request.version is not None:
        raise SettingsError("--version requires --now: Airflow checks only the live version.")
    conf = {
        "read_model": request.read_model,
        "mode": str(request.mode),
        "stores": list(map(str, request.stores)),
        "from_log": request.from_log,
    }
    wanted = RunToFollow(
        f"quality check of {request.read_model}",
        QUALITY_DAG,
        conf,
        note=f"{request.read_model}, {request.mode}: {', '.join(request.stores)}",
        until=[f"check_{request.read_model}"],
    )
    dag_run, _ = trigger_and_follow(console, settings, wanted)
    return check_id(dag_run.run_id, request.read_model)


def _show(console: "Console", home: "Path", name: str) -> int:
    """Print a check's result, and return the exit code."""
    from include.quality.check import CheckResult
    from include.quality.report import summary_path

    try:
        result = CheckResult.read(summary_path(home, name).read_text(encoding="utf-8"))
    except OSError:
        console.print("[red]The check could not be run.[/red] The cause is printed above.")
        return 75
    if result["passed"] is None:
        console.print(result["verdict"], style="yellow", highlight=False, markup=False, soft_wrap=True)
        return 69
    color = "green" if result["passed"] else "red"
    console.print(result["verdict"], style=color, highlight=False, markup=False, soft_wrap=True)
    for key in result["failing_keys"][:SHOWN_KEYS]:
        console.print(f"  {key['place']}, key {key['key']!r}: {'; '.join(key['expectations'])}", markup=False)
        for side in ("stored", "replayed"):
            console.print(f"    {side:<9}{_fields(key[side])}", highlight=False, markup=False)
    more = result["failing_keys_total"] - SHOWN_KEYS
    if more > 0:
        console.print(f"  and {more:,} more", highlight=False)
    console.print(
        f"report: {result['report']}\n        {result['report_url']}", highlight=False, soft_wrap=True
    )
    return 0 if result["passed"] else 1


def _fields(record: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in record.items()) or "no such record"


def runs_table(runs: "Sequence[PastRun]") -> "Table":
    """Return a line for each check, given the newest last; the newest first."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("when (UTC)", "read model", "stores", "mode", "outcome", "run"):
        is_short = column in ("when (UTC)", "mode")
        table.add_column(column, overflow="fold", no_wrap=is_short)
    for past in reversed(runs):
        outcome = "[green]passed[/green]" if past.passed else f"[red]FAILED[/red] {'; '.join(past.failed)}"
        model = f"{past.read_model} v{past.version}"
        when = f"{past.checked_at:%Y-%m-%d %H:%M}"
        table.add_row(when, model, ", ".join(past.stores), past.mode, outcome, past.run_id)
    return table
