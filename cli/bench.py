"""`./foldlake bench`: run the benchmarks."""

import os
import subprocess
import sys
from typing import Annotated

import typer

PASSES_ON = True


def run(
    context: typer.Context,
    names: Annotated[list[str] | None, typer.Argument(help="Benchmarks to run; none: all of them.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the benchmarks.")] = False,
) -> None:
    """Run benchmarks: each starts what it needs, and checks its result against an oracle.

    Options that it does not know go on to the benchmark.

    Examples:
      ./foldlake bench --list

      ./foldlake bench catch_up
    """
    from include.errors import SettingsError
    from include.settings import CHECKOUT

    directory = CHECKOUT / "benchmarks"
    available = {
        path.stem: _first_line(path.read_text(encoding="utf-8"))
        for path in sorted(directory.glob("*.py"))
        if "def main(" in path.read_text(encoding="utf-8")
    }
    if listing:
        for name, purpose in available.items():
            print(f"{name:<24}{purpose}")
        return
    chosen = [name for name in names or [] if not name.startswith("-")] or list(available)
    if unknown := [name for name in chosen if name not in available]:
        raise SettingsError(
            f"There is no benchmark {unknown[0]!r}. There are: {', '.join(available) or 'none'}."
        )
    failed = [name for name in chosen if _run(name, context.args) != 0]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
        raise typer.Exit(1)


def _run(name: str, arguments: list[str]) -> int:
    from include.settings import CHECKOUT

    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    return subprocess.run(
        command, cwd=CHECKOUT, env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, check=False
    ).returncode


def _first_line(source: str) -> str:
    return source.partition("\n")[0].strip('"').strip()
