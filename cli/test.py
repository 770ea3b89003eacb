"""`./foldlake test`: the linters, the type checker and the tests."""

import subprocess
import sys

import typer

# Unknown arguments are passed to pytest.
CONTEXT_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}
# Two workers: some tests keep a core busy, others mostly wait. tests/conftest.py orders the tests.
EVERYTHING = (
    "--numprocesses=2",
    "--no-loadscope-reorder",
    "--durations=20",
    "tests/static",
    "tests/unit",
    "tests/integration",
)


def run(context: typer.Context) -> None:
    """Run ruff, import-linter, mypy, the unit tests and the integration tests, which start real servers on free ports.

    With arguments, pytest runs with these arguments. Without arguments, two processes run everything, the longest tests first.
    The tests that repeatedly kill each stage of a rebuild and each step of a compaction require -m endurance. Those of
    docker-compose.yaml require -m compose: they find a Docker engine, or install and start one, and build stand-ins for images
    that they cannot pull.

    Examples:
      ./foldlake test

      ./foldlake test tests/unit

      ./foldlake test tests/integration/test_embedded_stack.py -k schema

      ./foldlake test -m endurance

      ./foldlake test -m compose -o log_cli=true -o log_cli_level=INFO
    """
    from include.settings import CHECKOUT

    command = [sys.executable, "-m", "pytest", *(context.args or EVERYTHING)]
    if subprocess.run(command, cwd=CHECKOUT, check=False).returncode != 0:
        raise typer.Exit(1)
