"""Displays the progress of a start or stop: one line per process."""

from typing import Self

from rich.console import Console

from stack.progress import Progress

STATE_LABELS = {
    "preparing": "[dim]preparing[/dim]",
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
