"""`./foldlake logs`: show what a process wrote."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

FOLLOW_INTERVAL_S = 0.2
READ_BYTES = 64 * 1024


def run(
    name: Annotated[str, typer.Argument(help="A process as `./foldlake status` names it, or `stream`.")] = "",
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="How many lines from the end.")] = 50,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as more is written.")] = False,
) -> None:
    """Show the end of what a process wrote; without a name, list the logs that there are.

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
            f"There is no log of {name!r} in {directory}. There are: {', '.join(available) or 'none'}."
        )
    path = available[name]
    print("\n".join(_tail(path, lines)), flush=True)
    if follow:
        try:
            _follow(path)
        except KeyboardInterrupt:
            return


def _tail(path: Path, lines: int) -> list[str]:
    """Return the last lines, reading no more of the file's end than they take."""
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
    """Print what is added; a file that was put aside by rotation is followed in its successor."""
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
