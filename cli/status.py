"""`./foldlake status`: every process, and the stream's lag."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from cli.display.documents import NamesOption
from include.nodes.field_names import FieldNames

if TYPE_CHECKING:
    from rich.console import Console

    from include.quality.newest_checks import NewestCheck
    from include.quality.verified_stores import VerifiedStatus
    from include.settings import Placement, Settings
    from include.status.flow_status import StreamStatus
    from stack.process_status import ProcessStatus


def run(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs.")] = False,
    names: NamesOption = FieldNames.CAMEL,
) -> None:
    """Show the stack's processes, the stream's lag, how far each store is verified and by which engine, and since when and why the stream driver fails.

    Memory is the resident memory of a process and all its descendants. A query's error is truncated to the terminal's
    width; --json contains the whole text.

    The exit code is 0 when every process is ready, otherwise 1. In a container, status shows only the stream, and
    the exit code is 0 when it runs.

    Examples:
      ./foldlake status

      ./foldlake status --json
    """
    from rich.console import Console

    from cli.display.documents import print_document
    from cli.display.status_tables import (
        check_table,
        launch_table,
        process_table,
        stream_table,
        verified_table,
    )
    from include.settings import Settings
    from include.stream import driver_launch, launch_failures
    from include.stream.driver_configuration import rejected_change
    from stack.components.stream import missing_supervisor
    from stack.process_status import process_statuses
    from stack.supervision.configuration import configuration_path

    settings = Settings()
    # With servers of one's own, `up` may never have run here: containers run the processes.
    has_own_servers = settings.kafka.bootstrap and settings.registry.external_url and settings.airflow.url
    in_container = bool(has_own_servers) and not configuration_path(settings.home).exists()
    processes = [] if in_container else process_statuses(settings)
    stream = _stream(settings, processes)
    failed_launches = launch_failures.read(settings.home)
    rejected = rejected_change(settings.home)
    broken = _broken_modules(settings)
    verified = _verified(settings, processes)
    checks = _checks(settings)
    standby_pid = (
        (launch.standby_pid or None) if (launch := driver_launch.read_report(settings.home)) else None
    )
    placements = _placements(settings)
    state = "unknown" if isinstance(stream, str) else stream.state
    # A stream that folds may have its supervisor in another home.
    note = missing_supervisor(settings) if state in ("not running", "unknown") else ""
    supervisor = {"supervisor": note} if note else {}
    if as_json:
        document = {
            "home": str(settings.home),
            "processes": [asdict(p) for p in processes],
            "stream": {
                **({"state": state, "reason": stream} if isinstance(stream, str) else stream.to_json()),
                "standby_pid": standby_pid,
                "placements": [
                    {"read_model": name, "placement": placement} for name, placement in placements.items()
                ],
                **supervisor,
            },
            "verified": [asdict(store) for store in verified],
            "last_checks": [asdict(check) for check in checks],
            "left_out": broken,
            "rejected_change": rejected,
            "failed_launches": None if failed_launches is None else asdict(failed_launches),
            "certificates": _certificate_warnings(settings),
        }
        print_document(document, names)
    else:
        console = Console()
        _print_lines(console, broken, "red")
        _print_lines(console, _certificate_warnings(settings), "yellow")
        if in_container:
            console.print(
                "No `./foldlake up` has started processes in this home. Where containers run them, `docker compose ps` shows them.",
                highlight=False,
            )
        else:
            console.print(process_table(processes))
        if not in_container and all(process.pid is None for process in processes):
            console.print("The stack is not up: `./foldlake up` starts it.", highlight=False)
        notes: dict[str, object] = {
            "standby pid": standby_pid,
            **({"rejected change": rejected} if rejected else {}),
        }
        notes |= {f"placement of {name}": placement for name, placement in placements.items()}
        console.print(stream_table(stream, {**notes, **supervisor}))
        if verified:
            console.print(verified_table(verified))
        if checks:
            console.print(check_table(checks, datetime.now(UTC)))
        if failed_launches is not None:
            console.print(launch_table(failed_launches, datetime.now(UTC)))
    is_well = (
        state in ("running", "catching up")
        if in_container
        else all(process.state == "ready" for process in processes)
    )
    if not is_well:
        raise typer.Exit(1)


def _print_lines(console: "Console", lines: list[str], style: str) -> None:
    for text in lines:
        console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)


def _broken_modules(settings: "Settings") -> list[str]:
    """Return the modules of declarations that are left out, and why."""
    from include.declarations.load import load_catalog
    from include.errors import FoldlakeError

    try:
        return [str(failure) for failure in load_catalog(settings.declaration_folders).failures]
    except FoldlakeError as error:
        return [str(error)]


def _certificate_warnings(settings: "Settings") -> list[str]:
    """Return a sentence for each certificate in use that ends soon."""
    if not settings.has_peer_listener and settings.tls.cert_file is None:
        return []
    from include.errors import FoldlakeError
    from include.nodes.certificates import known_certificates

    try:
        return [one.warning for one in known_certificates(settings) if one.warning]
    except FoldlakeError as error:
        return [str(error)]


def _placements(settings: "Settings") -> "dict[str, Placement]":
    """Return the read models that are not partitioned, each with its placement."""
    from include.errors import FoldlakeError
    from include.nodes.placements import placements
    from include.settings import Placement

    try:
        found = placements(settings)
    except FoldlakeError:
        return {}  # shown as the reason why declarations cannot be loaded
    return {name: one for name, one in found.items() if one is not Placement.PARTITIONED}


def _stream(settings: "Settings", processes: list["ProcessStatus"]) -> "StreamStatus | str":
    """Return the status of the stream, or why it cannot be read."""
    from include.errors import FoldlakeError
    from include.status.measurement import read_stream_status

    if not _has_kafka(processes):
        return "Kafka is not up"
    try:
        return read_stream_status(settings)
    except FoldlakeError as error:
        return str(error)


def _has_kafka(processes: list["ProcessStatus"]) -> bool:
    return not any(process.name == "kafka" and process.pid is None for process in processes)


def _verified(settings: "Settings", processes: list["ProcessStatus"]) -> list["VerifiedStatus"]:
    """Return how far quality checks have verified each store; without Kafka, the number of events is unknown."""
    import time

    from include.declarations.load import load_catalog
    from include.errors import FoldlakeError
    from include.quality.verified_stores import verified_statuses

    try:
        models = load_catalog(settings.declaration_folders).models.values()
    except FoldlakeError:
        return []  # shown as the reason why declarations cannot be loaded
    return [
        status
        for model in models
        for status in verified_statuses(settings, model, time.time(), has_kafka=_has_kafka(processes))
    ]


def _checks(settings: "Settings") -> list["NewestCheck"]:
    """Return the newest check of each read model that has one."""
    from include.declarations.load import load_catalog
    from include.errors import FoldlakeError
    from include.quality.newest_checks import newest_checks

    try:
        models = load_catalog(settings.declaration_folders).models
    except FoldlakeError:
        return []  # shown as the reason why declarations cannot be loaded
    found = newest_checks(settings.home, models)
    return [found[name] for name in models if name in found]
