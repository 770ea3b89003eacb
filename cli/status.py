"""`./foldlake status`: every process, and the stream's lag."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from include.settings import Settings
    from stack.process_status import ProcessStatus


def run(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")] = False,
) -> None:
    """Show every process of the stack, the stream's lag, how far the stores are verified, and since when and why the stream driver fails.

    Memory is the resident memory of a process and all its descendants. A query's error is truncated to the terminal's
    width; --json contains the whole text.

    The exit code is 0 when every process is ready, otherwise 1. In a container, status shows only the stream, and
    the exit code is 0 when it runs.

    Examples:
      ./foldlake status

      ./foldlake status --json
    """
    import json

    from rich.console import Console

    from cli.display.status_tables import duration, launch_table, process_table, stream_table
    from cli.display.verified_display import verified_table
    from include.settings import Settings
    from include.stream import driver_launch, launch_series
    from stack.components.stream import missing_keeper
    from stack.process_status import process_statuses
    from stack.supervision.configuration import configuration_path

    settings = Settings()
    # With servers of one's own, `up` may never have run here: containers run the processes.
    has_own_servers = settings.kafka.bootstrap and settings.registry.external_url and settings.airflow.url
    in_container = bool(has_own_servers) and not configuration_path(settings.home).exists()
    processes = [] if in_container else process_statuses(settings)
    stream = _stream(settings, processes)
    failed_launches = launch_series.read(settings.home)
    broken = _broken_modules(settings)
    verified = _verified(settings, processes)
    launch = driver_launch.read_report(settings.home)
    stream["placements"] = _placements(settings)
    stream["standby_pid"] = (launch.standby_pid or None) if launch else None
    # A stream that folds may have its keeper in another home.
    if stream["state"] in ("not running", "unknown") and (note := missing_keeper(settings)):
        stream["keeper"] = note
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
        if in_container:
            console.print(
                "No `./foldlake up` has started processes in this home. Where containers run them, `docker compose ps` shows them.",
                highlight=False,
            )
        else:
            console.print(process_table(processes))
        if not in_container and all(process.pid is None for process in processes):
            console.print("The stack is not up: `./foldlake up` starts it.", highlight=False)
        console.print(stream_table(stream))
        if verified:
            console.print(verified_table(verified, duration))
        if failed_launches is not None:
            console.print(launch_table(failed_launches, datetime.now(UTC)))
    is_well = (
        stream["state"] in ("running", "catching up")
        if in_container
        else all(process.state == "ready" for process in processes)
    )
    if not is_well:
        raise typer.Exit(1)


def _broken_modules(settings: "Settings") -> list[str]:
    """Return the modules of declarations that are left out, and why."""
    from include.declarations.load import load_catalog
    from include.errors import FoldlakeError

    try:
        return [str(failure) for failure in load_catalog(settings.declaration_folders).failures]
    except FoldlakeError as error:
        return [str(error)]


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

    from include.declarations.load import load_catalog
    from include.errors import FoldlakeError
    from include.quality.verified_status import verified_statuses

    has_kafka = not any(process.name == "kafka" and process.pid is None for process in processes)
    try:
        models = load_catalog(settings.declaration_folders).models.values()
    except FoldlakeError:
        return []  # shown as the reason why declarations cannot be loaded
    found = [
        status
        for model in models
        for status in verified_statuses(settings, model, time.time(), has_kafka=has_kafka)
    ]
    return [asdict(status) for status in found]
