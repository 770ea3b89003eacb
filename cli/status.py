"""`./foldlake status`: every process, and the stream's lag."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table
    from rich.text import Text

    from include.settings import Settings
    from include.stream.launch_series import LaunchSeries
    from stack.process_status import ProcessStatus

COLORS = {"ready": "green", "not ready": "yellow", "starting": "yellow", "stopped": "dim"}
SECONDS_PER_MINUTE = 60
MINUTES_PER_HOUR = 60
HOURS_PER_DAY = 24


def run(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")] = False,
) -> None:
    """Show every process of the stack, the stream's lag, how far the stores are verified, and since when and why the stream driver fails.

    Memory is the resident memory of a process and all its descendants. A query's error is truncated to the terminal's
    width; --json contains the whole text.

    The exit code is 0 when every process is ready, otherwise 1.

    Examples:
      ./foldlake status

      ./foldlake status --json
    """
    import json

    from rich.console import Console

    from cli.display.verified_display import verified_table
    from include.settings import Settings
    from include.stream import driver_launch, launch_series
    from stack.process_status import process_statuses

    settings = Settings()
    processes = process_statuses(settings)
    stream = _stream(settings, processes)
    failed_launches = launch_series.read(settings.home)
    broken = _broken_modules(settings)
    verified = _verified(settings, processes)
    launch = driver_launch.read_report(settings.home)
    stream["placements"] = _placements(settings)
    stream["standby_pid"] = (launch.standby_pid or None) if launch else None
    if as_json:
        document = {
            "home": str(settings.home),
            "processes": [asdict(p) for p in processes],
            "stream": stream,
            "verified": verified,
            "left_out": broken,
            "failed_launches": None if failed_launches is None else asdict(failed_launches),
        }
        print(json.dumps(document, indent=2, default=str))
    else:
        console = Console()
        for text in broken:
            console.print(text, style="red", highlight=False, markup=False, soft_wrap=True)
        console.print(_process_table(processes))
        if all(process.pid is None for process in processes):
            console.print("The stack is not up: `./foldlake up` starts it.", highlight=False)
        console.print(stream_table(stream))
        if verified:
            console.print(verified_table(verified, duration))
        if failed_launches is not None:
            console.print(launch_table(failed_launches, datetime.now(UTC)))
    if any(process.state != "ready" for process in processes):
        raise typer.Exit(1)


def _broken_modules(settings: "Settings") -> list[str]:
    """Return the modules of declarations that are left out, and why."""
    from include.declarations.catalog import load_catalog
    from include.declarations.loading.modules import load_modules
    from include.errors import FoldlakeError

    try:
        failures = load_modules(settings.declaration_folders).failures
        load_catalog(settings.declaration_folders)
    except FoldlakeError as error:
        return [str(error)]
    return [str(failure) for failure in failures]


def _placements(settings: "Settings") -> list[dict[str, str]]:
    """Return the read models that are not partitioned, each with its placement."""
    from include.errors import FoldlakeError
    from include.nodes.placements import placements
    from include.settings import Placement

    try:
        found = placements(settings)
    except FoldlakeError:
        return []  # shown as the reason why declarations cannot be loaded
    return [
        {"read_model": name, "placement": str(placement)}
        for name, placement in found.items()
        if placement is not Placement.PARTITIONED
    ]


def _stream(settings: "Settings", processes: list["ProcessStatus"]) -> dict[str, Any]:
    from include.errors import FoldlakeError
    from include.stream.status import read_stream_status

    if any(process.name == "kafka" and process.pid is None for process in processes):
        return {"state": "unknown", "reason": "Kafka is not up"}
    try:
        return asdict(read_stream_status(settings))
    except FoldlakeError as error:
        return {"state": "unknown", "reason": str(error)}


def _verified(settings: "Settings", processes: list["ProcessStatus"]) -> list[dict[str, Any]]:
    """Return how far quality checks have verified each store; without Kafka, the number of events is unknown."""
    import time

    from include.declarations.read_model import load_read_models
    from include.errors import FoldlakeError
    from include.quality.verified_status import verified_statuses

    has_kafka = not any(process.name == "kafka" and process.pid is None for process in processes)
    try:
        models = load_read_models(settings.declaration_folders).values()
    except FoldlakeError:
        return []  # shown as the reason why declarations cannot be loaded
    found = [
        status
        for model in models
        for status in verified_statuses(settings, model, time.time(), has_kafka=has_kafka)
    ]
    return [asdict(status) for status in found]


def _process_table(processes: list["ProcessStatus"]) -> "Table":
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("process")
    table.add_column("state")
    for column in ("pid", "port", "memory", "uptime", "restarts"):
        table.add_column(column, justify="right")
    for process in processes:
        color = COLORS.get(process.state, "red")
        table.add_row(
            process.name,
            f"[{color}]{process.state}[/{color}]",
            str(process.pid or ""),
            str(process.port or ""),
            f"{process.memory_mb} MB" if process.memory_mb is not None else "",
            duration(process.uptime_s) if process.uptime_s is not None else "",
            str(process.restarts),
        )
    return table


def stream_table(stream: dict[str, Any]) -> "Table":
    """Return the result of `read_stream_status`, passed as a dictionary, as a table of names and values."""
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), title="stream", title_justify="left")
    for name, value in stream.items():
        if isinstance(value, tuple | list):
            continue
        table.add_row(name.replace("_", " ").removesuffix(" s"), _figure(name, value))
    for row in _version_rows(stream):
        table.add_row(*row)
    for route in stream.get("routes", ()):
        progress = (
            f"{route['records']} records on {route['output_topic']}, {route['events_behind']} events behind"
        ) + _in_batches(route)
        table.add_row(f"route {route['route']}", progress)
    for emission in stream.get("emissions", ()):
        progress = f"{emission['records']} records on {emission['output_topic']}, {emission['events_behind']} events behind"
        table.add_row(f"emission {emission['emission']} v{emission['version']}", progress)
    for periodic in stream.get("periodic", ()):
        table.add_row(f"periodic {periodic['emission']}", _periodic_state(periodic))
    for held in stream.get("open_transactions", ()):
        table.add_row(f"transaction on {held['topic']}", _open_transaction(held))
    for letters in stream.get("stuck_dead_letters", ()):
        table.add_row(f"dead letters of {letters['source_topic']}", _stuck_state(letters))
    for query in stream.get("queries", ()):
        table.add_row(f"query {query['query']}", _query_state(query))
    return table


def _version_rows(stream: dict[str, Any]) -> "Iterator[tuple[str, str]]":
    for version in stream.get("versions", ()):
        yield f"{version['read_model']} v{version['version']}", _version_state(version)
    for placed in stream.get("placements", ()):
        yield f"placement of {placed['read_model']}", placed["placement"]
    for version in stream.get("building", ()):
        yield f"{version['read_model']} v{version['version']}", _building_state(version)


def _version_state(version: dict[str, Any]) -> str:
    progress = f"{version['stage']}, {version['events']} events, {version['events_behind']} behind"
    progress += _in_batches(version)
    if version["still_s"] is not None:
        progress += f", [red]standing still for {duration(round(version['still_s']))}[/red]"
    ahead = version.get("event_time_ahead")
    if ahead is not None:
        progress += f", [yellow]event time {duration(round(ahead['ahead_s']))} ahead of its append time: {ahead['event']}[/yellow]"
    return progress


def _building_state(version: dict[str, Any]) -> str:
    since = datetime.fromisoformat(version["created_at"])
    lasted = duration(round((datetime.now(UTC) - since).total_seconds()))
    return f"building for {lasted}, fold {version['fold_revision']}: {version['reason']}"


def _periodic_state(periodic: dict[str, Any]) -> str:
    age_s = periodic["newest_tick_age_s"]
    newest = "no tick yet" if age_s is None else f"newest tick {duration(round(age_s))} ago"
    return f"every {periodic['interval_s']:g} s to {periodic['output_topic']}, {newest}"


def _open_transaction(held: dict[str, Any]) -> str:
    return f"[yellow]open for {duration(round(held['open_s']))}: {held['records']} records wait until it ends[/yellow]"


def _stuck_state(letters: dict[str, Any]) -> str:
    stuck_for = duration(round(letters["stuck_for_s"]))
    return f"[red]not written for {stuck_for}; the folds continue[/red]"


def _in_batches(declared: dict[str, Any]) -> str:
    from include.declarations.latency import Latency

    emit_every_s = declared.get("emit_every_s")
    if emit_every_s is not None:
        return f", a record per key every {emit_every_s:g} s"
    return ", in batches" if declared["latency"] == Latency.SECOND else ""


def launch_table(series: "LaunchSeries", now: datetime) -> "Table":
    """Return two lines on a driver that fails after each launch: since when, how often and when it is launched next; and the error.

    The second is truncated to the terminal's width.
    """
    from rich.table import Table
    from rich.text import Text

    since = datetime.fromisoformat(series.since)
    times = f"{series.failures} time" + ("s in a row" if series.failures > 1 else "")
    if series.launched_at:
        launched = round((now - datetime.fromisoformat(series.launched_at)).total_seconds())
        then = f"launched again {duration(launched)} ago"
    else:
        wait_s = (datetime.fromisoformat(series.next_launch_at) - now).total_seconds()
        then = f"next launch in {duration(round(wait_s))}" if wait_s > 0 else "next launch now"
    lasted = duration(round(series.lasted_s(now)))
    line = f"the driver has failed {times} since {since:%Y-%m-%d %H:%M:%S} UTC ({lasted}); {then}"
    table = Table.grid()
    table.add_row(Text(line, style="red"))
    table.add_row(Text(f"last error: {series.last_error}", no_wrap=True, overflow="ellipsis"))
    return table


def _query_state(query: dict[str, Any]) -> "Text":
    """Describe a query in one line, truncated to the terminal's width: Spark's error messages are long."""
    from rich.text import Text

    error = " ".join(query["last_error"].split())
    slots = f"{query['task_slots']} slots" if query["task_slots"] else "shared slots"
    line = f"{query['phase']}, {slots}, {query['restarts']} restarts" + (f": {error}" if error else "")
    return Text(line, no_wrap=True, overflow="ellipsis")


def _figure(name: str, value: object) -> str:
    if value is None:
        return "none yet"
    return duration(round(value)) if name.endswith("_s") and isinstance(value, float) else str(value)


def duration(seconds: int) -> str:
    """Format a duration for people: `42 s`, `3 min`, `2 h 05 min`, `12 d 3 h`."""
    if seconds < SECONDS_PER_MINUTE:
        return f"{seconds} s"
    minutes = seconds // SECONDS_PER_MINUTE
    if minutes < MINUTES_PER_HOUR:
        return f"{minutes} min"
    hours = minutes // MINUTES_PER_HOUR
    if hours < HOURS_PER_DAY:
        return f"{hours} h {minutes % MINUTES_PER_HOUR:02d} min"
    return f"{hours // HOURS_PER_DAY} d {hours % HOURS_PER_DAY} h"
