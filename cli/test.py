"""`./foldlake test`: the linters, the type checker and the tests."""

import subprocess
import sys
from pathlib import Path

import typer

# Unknown arguments are passed to pytest.
CONTEXT_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}
# Two workers: some tests keep a core busy, others mostly wait. In the order of the arguments, so the quick tests come first.
IN_PARALLEL = ("--numprocesses=2", "--no-loadscope-reorder")


def run(context: typer.Context) -> None:
    """Run ruff, import-linter, mypy, the unit tests, then the integration tests, which start real servers on free ports.

    With arguments, only pytest runs, with these arguments. Without arguments, every step runs even if an earlier one fails, and
    two processes run the tests. The tests that repeatedly kill each stage of a rebuild and each step of a compaction require
    -m endurance. Those of docker-compose.yaml require -m compose: they find a Docker engine, or install and start one, and build
    stand-ins for images that they cannot pull.

    Examples:
      ./foldlake test

      ./foldlake test tests/unit

      ./foldlake test tests/integration/test_embedded_stack.py -k schema

      ./foldlake test -m endurance

      ./foldlake test -m compose -o log_cli=true -o log_cli_level=INFO
    """
    from include.settings import CHECKOUT

    bin_directory = Path(sys.executable).parent
    pytest = [sys.executable, "-m", "pytest"]
    steps = (
        {"pytest": [*pytest, *context.args]}
        if context.args
        else {
            "ruff check": [str(bin_directory / "ruff"), "check"],
            "ruff format": [str(bin_directory / "ruff"), "format", "--check"],
            # Without a cache: it takes less than a second, and creates no folder in the checkout.
            "import-linter": [str(bin_directory / "lint-imports"), "--no-cache"],
            "mypy": [sys.executable, "-m", "mypy"],
            # The last step's output ends with its slowest tests and pytest's summary.
            "tests": [*pytest, *IN_PARALLEL, "--durations=20", "tests/unit", "tests/integration"],
        }
    )
    failed = []
    for name, command in steps.items():
        print(f"== {name}", flush=True)
        if subprocess.run(command, cwd=CHECKOUT, check=False).returncode != 0:
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
        raise typer.Exit(1)
