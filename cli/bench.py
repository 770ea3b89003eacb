"""`./foldlake bench`: run the benchmarks."""

import os
import subprocess
import sys
from typing import Annotated

import typer

# All options after a benchmark's name are passed to the benchmark.
CONTEXT_SETTINGS = {"allow_interspersed_args": False}


def run(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Benchmarks to run, or one benchmark and its options. Default: all benchmarks.",
        ),
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the benchmarks.")] = False,
) -> None:
    """Run benchmarks. Each starts the servers that it needs, and verifies its result exactly.

    Options after a name are passed to that benchmark, which has its own --help. Several benchmarks can only be run with
    their defaults.

    Examples:
      ./foldlake bench --list

      ./foldlake bench catch_up latency

      ./foldlake bench catch_up --events 500000
    """
    available = available_benchmarks()
    if listing:
        for name, purpose in available.items():
            print(f"{name:<24}{purpose}")
        return
    names, options = names_and_options(words or [], list(available))
    failed = [name for name in names if _run(name, options) != 0]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
        raise typer.Exit(1)


def available_benchmarks() -> dict[str, str]:
    """Return the purpose of each benchmark by name: a module of `benchmarks/`, or a package that Python can run."""
    from include.settings import CHECKOUT

    folder = CHECKOUT / "benchmarks"
    modules = {path.stem: path for path in folder.glob("*.py")}
    packages = {path.parent.name: path for path in folder.glob("*/__main__.py")}
    sources = {name: path.read_text(encoding="utf-8") for name, path in sorted((modules | packages).items())}
    return {name: _first_line(source) for name, source in sources.items() if "def main(" in source}


def names_and_options(words: list[str], available: list[str]) -> tuple[list[str], list[str]]:
    """Split a command line into the names of benchmarks and the options of the benchmark.

    Raises:
        SettingsError: a name does not exist, or options follow several names.
    """
    from include.errors import SettingsError

    first_option = next((index for index, word in enumerate(words) if word.startswith("-")), len(words))
    names, options = words[:first_option], words[first_option:]
    if unknown := [name for name in names if name not in available]:
        raise SettingsError(
            f"There is no benchmark {unknown[0]!r}. Available: {', '.join(available) or 'none'}."
        )
    if options and len(names) > 1:
        raise SettingsError(
            f"Options ({' '.join(options)}) are allowed for a single benchmark only, not for {', '.join(names)}."
        )
    return names or available, options[1:] if options[:1] == ["--"] else options


def _run(name: str, arguments: list[str]) -> int:
    from include.settings import CHECKOUT

    command = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    return subprocess.run(
        command, cwd=CHECKOUT, env={**os.environ, "PYTHONPATH": str(CHECKOUT)}, check=False
    ).returncode


def _first_line(source: str) -> str:
    return source.partition("\n")[0].strip('"').strip()
