"""`./foldlake quality`: check whether stored records are what the events fold to."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from include.quality.check import CheckRequest
    from include.settings import Settings

SHOWN_KEYS = 20


def run(
    read_model: Annotated[str, typer.Argument(help="The read model.")] = "balance",
    sample: Annotated[bool, typer.Option("--sample/--full", help="A sample of the keys, or all.")] = False,
    stores: Annotated[
        str, typer.Option(help="Of lake, nodes, changelog, staging; with commas between.")
    ] = "lake,nodes",
    version: Annotated[int, typer.Option(min=0, help="Only with --now: its version; 0: the live one.")] = 0,
    now: Annotated[bool, typer.Option("--now", help="Run it here, without Airflow.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Show the last results and check nothing.")] = False,
) -> None:
    """Check a read model's stored records against the events in the log, folded again.

    Starts a run of Airflow's DAG `quality` and follows it. The exit code is 0 when the check passed, 1 when it failed,
    75 when it could not be made, 69 when it never can be. docs/quality.md says what is checked and what to do.

    Examples:
      ./foldlake quality

      ./foldlake quality balance --sample --stores nodes

      ./foldlake quality --now

      ./foldlake quality --list
    """
    from rich.console import Console

    from include.declarations.read_model import read_model as declared
    from include.quality.check import CheckRequest, Mode
    from include.settings import Settings

    settings, console = Settings(), Console()
    if listing:
        _list(console, settings)
        return
    declared(read_model, settings.read_models_dir)
    mode = Mode.SAMPLE if sample else Mode.FULL
    request = CheckRequest(read_model, _stores(stores), mode, "", version or None)
    name = _now(settings, request) if now else _by_airflow(console, settings, request)
    raise typer.Exit(_show(console, settings, name))


def _stores(text: str) -> "tuple[Any, ...]":
    from include.errors import SettingsError
    from include.quality.check import StoreName

    try:
        return tuple(StoreName(name.strip()) for name in text.split(","))
    except ValueError as error:
        raise SettingsError(f"--stores: {error}. There are {', '.join(StoreName)}.") from error


def _now(settings: "Settings", request: "CheckRequest") -> str:
    """Run the job as Airflow would, and return the name of its report."""
    from dataclasses import replace
    from datetime import UTC, datetime

    from include.quality.job_arguments import arguments
    from stack.launchers.direct_submit import run as run_job

    name = f"now-{datetime.now(UTC):%Y-%m-%dT%H-%M-%S}-{request.read_model}"
    run_job(settings, "quality", arguments(replace(request, run_id=name)))
    return name


def _by_airflow(console: "Console", settings: "Settings", request: "CheckRequest") -> str:
    """Have Airflow run it, follow, and return the name of its report."""
    from cli.display.run_follower import Following, follow_or_leave
    from include.airflow.names import QUALITY_DAG
    from include.errors import SettingsError
    from include.quality.run_ids import check_id
    from stack.components import airflow

    if request.version is not None:
        raise SettingsError("Airflow checks the live version: to check another one, add --now.")
    api = airflow.api(settings)
    conf = {
        "read_model": request.read_model,
        "mode": str(request.mode),
        "stores": list(map(str, request.stores)),
    }
    note = f"{request.read_model}, {request.mode}: {', '.join(request.stores)}"
    run_id = api.trigger(QUALITY_DAG, conf, note=note)
    url = f"{settings.airflow.base_url}/dags/{QUALITY_DAG}/runs/{run_id}"
    console.print(f"quality check of {request.read_model} begun: {url}", highlight=False, soft_wrap=True)
    until = f"check_{request.read_model}"
    follow_or_leave(Following(api, QUALITY_DAG, run_id, console, until=until), f"{url} shows it.")
    return check_id(run_id, request.read_model)


def _show(console: "Console", settings: "Settings", name: str) -> int:
    """Print what a check came to, and return its exit code."""
    from include.quality.check import CheckResult
    from include.quality.report import summary_path

    try:
        result = CheckResult.read(summary_path(settings, name).read_text(encoding="utf-8"))
    except OSError:
        console.print("[red]The check could not be made.[/red] What is printed above says why.")
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


def _list(console: "Console", settings: "Settings") -> None:
    """Show the newest runs, the newest last."""
    from rich.table import Table

    from include.quality.history import last_runs

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("when (UTC)", "read model", "stores", "mode", "outcome", "run"):
        table.add_column(column, overflow="fold")
    for past in last_runs(settings):
        outcome = "[green]passed[/green]" if past.passed else f"[red]FAILED[/red] {'; '.join(past.failed)}"
        model = f"{past.read_model} v{past.version}"
        when = f"{past.checked_at:%Y-%m-%d %H:%M:%S}"
        table.add_row(when, model, ", ".join(past.stores), past.mode, outcome, past.run_id)
    console.print(table)
