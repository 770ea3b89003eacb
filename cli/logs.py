"""`./foldlake logs`: show the log of a process."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

FOLLOW_INTERVAL_S = 0.2
READ_BYTES = 64 * 1024


def run(
    name: Annotated[
        str,
        typer.Argument(
            help="A process, as in `./foldlake status`, or `stream` for the stream driver. Default: list the logs."
        ),
    ] = "",
    lines: Annotated[
        int, typer.Option("-n", "--lines", min=0, help="Number of lines to show from the end.")
    ] = 50,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Keep printing new lines until Ctrl-C.")
    ] = False,
) -> None:
    """Show the end of a process's log. Without a name, list the logs.

    The logs are files in FOLDLAKE_HOME/logs. The log of the stream driver continues across its restarts.

    Examples:
      ./foldlake logs

      ./foldlake logs kafka -n 200

      ./foldlake logs stream -f
    """
    from include.errors import SettingsError
    from include.settings import Settings

    directory = Settings().home / "logs"
    available = {path.stem: path for path in sorted(directory.glob("*.log"))}
    if not name:
        for log, path in available.items():
            print(f"{log:<24}{path}")
        return
    if name not in available:
        raise SettingsError(
            f"{name!r} has no log in {directory}. Available: {', '.join(available) or 'none'}."
        )
    path = available[name]
    print("\n".join(_tail(path, lines)), flush=True)
    if follow:
        try:
            _follow(path)
        except KeyboardInterrupt:
            return


def _tail(path: Path, lines: int) -> list[str]:
    """Return the last lines, reading only the end of the file."""
    with path.open("rb") as log:
        position = log.seek(0, 2)
        text = b""
        while position > 0 and text.count(b"\n") <= lines:
            step = min(READ_BYTES, position)
            position -= step
            log.seek(position)
            text = log.read(step) + text
    return text.decode(errors="replace").splitlines()[-lines:] if lines else []


def _follow(path: Path) -> None:
    """Print lines as they are added to the file, also across rotations."""
    log = path.open("rb")
    log.seek(0, 2)
    while True:
        if added := log.read(READ_BYTES):
            sys.stdout.write(added.decode(errors="replace"))
            sys.stdout.flush()
        elif path.exists() and path.stat().st_size < log.tell():
            log.close()
            log = path.open("rb")
        else:
            time.sleep(FOLLOW_INTERVAL_S)
