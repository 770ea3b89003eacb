"""The command line: what it lists, and that help costs nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cli.app import app
from cli.names import COMMANDS, overview
from cli.status import duration, stream_table
from include.settings import CHECKOUT

PASSED_ON = {"stream"}


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in PASSED_ON])
def test_every_command_has_help_with_an_example(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])

    assert result.exit_code == 0
    assert f"./foldlake {command}" in result.output


def test_help_is_there_before_anything_is_prepared(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "FOLDLAKE_TOOLS": str(tmp_path / "tools")}

    done = subprocess.run(
        [CHECKOUT / "foldlake", "--help"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )

    assert done.stdout == overview() + "\n"
    assert not (tmp_path / "tools").exists()


def test_without_java_nothing_is_downloaded_and_the_message_says_what_to_do(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    environment = {
        "PATH": str(python.parent),
        "JAVA_HOME": "/none",
        "FOLDLAKE_TOOLS": str(tmp_path / "tools"),
    }
    # A machine's usual places may hold one all the same.
    without_java = (
        "import sys; from stack.provisioning import java, launcher; java.USUAL_PLACES = ();"
        "sys.exit(launcher.launch(['up']))"
    )

    done = subprocess.run(
        [sys.executable, "-c", without_java],
        env=environment,
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 1
    assert "foldlake: Foldlake needs Java 17" in done.stderr
    assert "/none/bin/java: does not run" in done.stderr
    assert not (tmp_path / "tools" / "bootstrap").exists()


@pytest.mark.parametrize("command", [["logs", "nothing"], ["up", "--only", "nothing"], ["bench", "nothing"]])
def test_a_name_that_does_not_exist_is_answered_with_those_that_do(
    command: list[str], tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cli", *command],
        env={**os.environ, "FOLDLAKE_HOME": str(tmp_path), "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert "'nothing'" in done.stderr
    assert "There are:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (7500, "2 h 05 min"), (90_000, "1 d 1 h")],
)
def test_durations_are_written_as_a_person_would(seconds: int, text: str) -> None:
    assert duration(seconds) == text


def test_a_query_s_error_does_not_stretch_the_status_table() -> None:
    error = "[KAFKA_DATA_LOSS] Some data may have been lost:\n" + "at org.apache.spark.Frame\n" * 50
    query = {"query": "balance/v1", "phase": "failed", "restarts": 3, "last_error": error}
    console = Console(width=60)

    with console.capture() as capture:
        console.print(stream_table({"state": "failing", "queries": (query,)}))

    *_, line = capture.get().splitlines()
    assert line.rstrip() == "query balance/v1  failed, 3 restarts: [KAFKA_DATA_LOSS] S…"
