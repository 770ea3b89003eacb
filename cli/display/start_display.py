"""Displays the progress of a start or stop, one line per process, and the addresses of the running stack."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

from rich.console import Console

from include.settings import AirflowSettings, Settings
from stack.plan import KEEP, PlannedProcess
from stack.readiness import Progress


def endpoints(settings: Settings) -> str:
    """Return the addresses of the stack's servers, one per line, in plain text without wrapping."""
    node = first_node(settings)
    lines = {
        "Status page": f"{node}/",
        "A balance": f"{curl(settings)} -i '{node}/api/customers.getBalance?customerId=1'",
        "Query nodes": "  ".join(map(settings.loopback_url, settings.query_ports)),
        "Airflow": f"{settings.airflow.pages_url}  (user admin, password {_password(settings.home, settings.airflow)})",
        "Schema registry": settings.registry.url,
        "Kafka": settings.kafka.bootstrap_servers,
    }
    if settings.auth.accepts_keys:
        lines["A key"] = "KEY=$(./foldlake keys create --name <who> --scopes read,write)"
    return "\n".join(f"  {name:<17}{address}" for name, address in lines.items())


def first_node(settings: Settings) -> str:
    """Return the URL at which callers on this machine reach the first node."""
    return settings.loopback_url(settings.query_ports[0])


def curl(settings: Settings) -> str:
    """Return the beginning of a command line for curl, with a key if nodes demand one."""
    return 'curl -H "Authorization: Bearer $KEY"' if settings.auth.is_on else "curl"


def planned_lines(planned: Sequence[PlannedProcess]) -> str:
    """Return what would become of each process, one per line, with the settings and other parts that have changed."""
    lines = [f"  {one.name:<22}{one.action:<9}{', '.join(one.reasons)}".rstrip() for one in planned]
    if all(one.action == KEEP for one in planned):
        lines.append("Nothing changes.")
    return "\n".join(lines)


def _password(home: Path, airflow: AirflowSettings) -> str:
    """Return Airflow's password, or a note if its file does not exist yet."""
    from include.airflow.client import password

    try:
        return password(home, airflow)
    except (OSError, ValueError, KeyError):
        return "not set yet"


STATE_LABELS = {
    "preparing": "[dim]preparing[/dim]",
    "getting ready": "[yellow]getting ready[/yellow]",
    "starting": "[yellow]starting[/yellow]",
    "ready": "[green]ready[/green]",
    "stopping": "[yellow]stopping[/yellow]",
    "stopped": "[green]stopped[/green]",
}
# Preparing a component takes less time than this if it is already prepared; no line is printed then.
SILENT_BELOW_S = 0.5


class ProgressDisplay:
    """A listener for `stack.lifecycle`: prints a line per finished step; a spinner shows the steps in progress."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._active: dict[str, str] = {}
        self._spinner = console.status("")

    def __enter__(self) -> Self:
        """Show the spinner."""
        self._spinner.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the spinner."""
        self._spinner.stop()

    def __call__(self, progress: Progress) -> None:
        """Display one step."""
        if progress.state in {"ready", "stopped", "prepared"}:
            self._active.pop(progress.name, None)
            if progress.state != "prepared":
                self._line(progress)
            elif progress.elapsed_s > SILENT_BELOW_S:
                self._console.print(f"  {progress.name:<22}[dim]prepared {progress.elapsed_s:5.1f} s[/dim]")
        else:
            self._active[progress.name] = progress.state
        self._spinner.update(
            ", ".join(f"{name} {STATE_LABELS[state]}" for name, state in self._active.items())
        )

    def _line(self, progress: Progress) -> None:
        self._console.print(
            f"  {progress.name:<22}{STATE_LABELS[progress.state]} {progress.elapsed_s:8.1f} s"
        )
