"""The tables of `./foldlake status`: processes, the stream, and the launches of its driver."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table
    from rich.text import Text

    from include.stream.launch_series import LaunchSeries
    from stack.process_status import ProcessStatus

COLORS = {"ready": "green", "not ready": "yellow", "starting": "yellow", "stopped": "dim"}
SECONDS_PER_MINUTE = 60
MINUTES_PER_HOUR = 60
HOURS_PER_DAY = 24


def process_table(processes: list["ProcessStatus"]) -> "Table":
    """Return a row for each process of the stack."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for column in ("process", "state", "pid", "port", "memory", "uptime", "restarts"):
        table.add_column(column, justify="left" if column in ("process", "state") else "right")
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
        if isinstance(value, tuple | list | dict):
            continue
        table.add_row(name.replace("_", " ").removesuffix(" s"), _figure(name, value))
    for row in _version_rows(stream):
        table.add_row(*row)
    for route in stream.get("routes", ()):
        table.add_row(f"route {route['route']}", _written(route) + _in_batches(route))
    for emission in stream.get("emissions", ()):
        table.add_row(f"emission {emission['emission']} v{emission['version']}", _written(emission))
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


def _written(output: dict[str, Any]) -> str:
    return f"{output['records']} records on {output['output_topic']}, {output['events_behind']} events behind"


def _periodic_state(periodic: dict[str, Any]) -> str:
    age_s = periodic["newest_tick_age_s"]
    newest = "no tick yet" if age_s is None else f"newest tick {duration(round(age_s))} ago"
    return f"every {periodic['interval_s']:g} s to {periodic['output_topic']}, {newest}"


def _open_transaction(held: dict[str, Any]) -> str:
    return f"[yellow]open for {duration(round(held['open_s']))}: {held['records']} records wait until it ends[/yellow]"


def _stuck_state(letters: dict[str, Any]) -> str:
    return f"[red]not written for {duration(round(letters['stuck_for_s']))}; the folds continue[/red]"


def _in_batches(declared: dict[str, Any]) -> str:
    from include.declarations.latency import Latency

    if (emit_every_s := declared.get("emit_every_s")) is not None:
        return f", a record per key every {emit_every_s:g} s"
    return ", in batches" if declared["latency"] == Latency.SECOND else ""


def launch_table(series: "LaunchSeries", now: datetime) -> "Table":
    """Return two lines on a driver that fails after each launch: since when, how often and when it is launched next; and the error.

    The second is truncated to the terminal's width.
    """
    from rich.table import Table
    from rich.text import Text

    since = datetime.fromisoformat(series.since)
    if series.launched_at:
        launched = round((now - datetime.fromisoformat(series.launched_at)).total_seconds())
        then = f"launched again {duration(launched)} ago"
    else:
        wait_s = (datetime.fromisoformat(series.next_launch_at) - now).total_seconds()
        then = f"next launch in {duration(round(wait_s))}" if wait_s > 0 else "next launch now"
    line = f"the driver has failed {series.count} since {since:%Y-%m-%d %H:%M:%S} UTC ({duration(round(series.lasted_s(now)))}); {then}"
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
