"""The tables of `./foldlake status`: processes, the stream, and the launches of its driver."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from include.words import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.table import Table
    from rich.text import Text

    from include.kafka.record_ends import OpenTransaction
    from include.quality.newest_checks import NewestCheck
    from include.quality.verified_stores import VerifiedStatus
    from include.status.flow_status import BuildingVersion, FlowStatus, StreamStatus
    from include.stream.launch_failures import LaunchFailures
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


def stream_table(stream: "StreamStatus | str", notes: "Mapping[str, object]") -> "Table":
    """Return the status of the stream, or why it is unknown, as a table of names and values, with a line for each flow.

    notes: further names and values; None stands for a value that does not exist yet.
    """
    table = _pairs("stream")
    figures: dict[str, object] = (
        {"state": "unknown", "reason": stream}
        if isinstance(stream, str)
        else {
            "state": stream.state,
            "driver pid": stream.driver_pid,
            "events behind": stream.events_behind,
            "newest event age": _age(stream.newest_event_age_s),
            "dead letters": stream.dead_letters,
        }
    )
    for name, value in {**figures, **notes}.items():
        table.add_row(name, "none yet" if value is None else str(value))
    if isinstance(stream, str):
        return table
    for version in stream.building:
        table.add_row(f"{version.read_model} v{version.version}", _building(version))
    for flow in stream.flows:
        table.add_row(_title(flow), _flow(flow))
    for source in stream.sources:
        if source.open_transaction is not None:
            table.add_row(f"transaction on {source.topic}", _open_transaction(source.open_transaction))
        if source.stuck_for_s:
            stuck = f"not written for {_age(source.stuck_for_s)}; the folds continue"
            table.add_row(f"dead letters of {source.topic}", f"[red]{stuck}[/red]")
    return table


def _pairs(title: str) -> "Table":
    from rich.table import Table

    return Table(box=None, show_header=False, padding=(0, 2, 0, 0), title=title, title_justify="left")


def _title(flow: "FlowStatus") -> str:
    from include.status.flow_status import FlowKind

    words: dict[str, str] = {FlowKind.FOLD: "", FlowKind.DEAD_LETTERS: "dead letters of "}
    version = f" v{flow.version}" if flow.has_query and flow.version is not None else ""
    return f"{words.get(flow.kind, f'{flow.kind} ')}{flow.name}{version}"


def _flow(flow: "FlowStatus") -> "Text":
    """Describe a flow in one line, truncated to the terminal's width: Spark's error messages are long."""
    from rich.text import Text

    line = Text(", ".join(_progress(flow)), no_wrap=True, overflow="ellipsis")
    if flow.still_s is not None:
        line.append(f", standing still for {_age(flow.still_s)}", "red")
    if (ahead := flow.event_time_ahead) is not None:
        line.append(f", event time {_age(ahead.ahead_s)} ahead of its append time: {ahead.event}", "yellow")
    report = flow.report
    if report is not None:
        slots = f"{report.task_slots} slots" if report.task_slots else "shared slots"
        line.append(f", {report.phase}, {slots}, {report.restarts} restarts")
        if report.last_error:
            line.append(f": {' '.join(report.last_error.split())}", "red")
    elif flow.has_query:
        line.append(", not running", "yellow")
    return line


def _progress(flow: "FlowStatus") -> "Iterator[str]":
    from include.declarations.latency import Latency
    from include.status.flow_status import FlowKind
    from include.stream.query_reports import Phase

    if not flow.has_query:
        age_s = flow.newest_output_age_s
        yield f"every {flow.emit_every_s:g} s to {flow.output_topic}"
        yield "no tick yet" if age_s is None else f"newest tick {_age(age_s)} ago"
        return
    if flow.kind == FlowKind.FOLD:
        yield f"{flow.stage}, {flow.events or 0} events"
    elif flow.kind == FlowKind.DEAD_LETTERS:
        yield str(flow.records or 0)
    elif flow.output_topic:
        yield f"{flow.records or 0} records on {flow.output_topic}"
    if flow.events_behind is not None:
        yield f"{flow.events_behind} behind"
    if flow.emit_every_s is not None:
        yield f"a record per key every {flow.emit_every_s:g} s"
    elif flow.latency is Latency.SECOND and (flow.report is None or flow.report.phase != Phase.BATCHES):
        yield "in batches"


def _building(version: "BuildingVersion") -> str:
    lasted_s = (datetime.now(UTC) - datetime.fromisoformat(version.created_at)).total_seconds()
    return f"building for {_age(lasted_s)}, fold {version.fold_revision}: {version.reason}"


def _open_transaction(held: "OpenTransaction") -> str:
    return f"[yellow]open for {_age(held.open_s)}: {held.records} records wait until it ends[/yellow]"


def _age(seconds: float | None) -> str | None:
    return None if seconds is None else duration(round(seconds))


def verified_table(stores: "Sequence[VerifiedStatus]") -> "Table":
    """Return a line for each store, with how far quality checks have verified it."""
    table = _pairs("verified")
    for store in stores:
        behind = (
            "an unknown number of events"
            if store.events_behind is None
            else plural(store.events_behind, "event")
        )
        table.add_row(
            f"{store.read_model} v{store.version}, {store.store}",
            f"{behind} not verified, the oldest at most {_age(store.age_s)} old; all keys verified "
            f"{_age(store.full_age_s)} ago",
        )
    return table


def check_table(checks: "Sequence[NewestCheck]", now: datetime) -> "Table":
    """Return a line for each read model: the outcome of its last check, when it ended, and which engine has compared the records."""
    from rich.markup import escape

    table = _pairs("last check")
    outcome = {True: "passed", False: "[red]FAILED[/red]", None: "[yellow]not checkable[/yellow]"}
    for check in checks:
        version = "" if check.version is None else f" v{check.version}"
        ended = f"{_age((now - check.ended_at).total_seconds())} ago"
        engine = f", {escape(check.engine_text)}" if check.engine_text else ""
        table.add_row(
            f"{check.read_model}{version}", f"{outcome[check.passed]} {ended}, {check.mode}{engine}"
        )
    return table


def launch_table(series: "LaunchFailures", now: datetime) -> "Table":
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
