"""The command line: its help, before and after the installation, and the errors of its arguments."""

import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from cli import bench
from cli.app import app
from cli.bench import available_benchmarks, names_and_options
from cli.display.status_tables import duration, launch_table, stream_table
from include.declarations.latency import Latency
from include.errors import SettingsError
from include.kafka.record_ends import OpenTransaction
from include.settings import CHECKOUT, Placement
from include.status.flow_status import FlowKind, FlowStatus, SourceStatus, StreamStatus
from include.stream.folded_offsets import EventTimeAhead
from include.stream.launch_failures import LaunchFailures
from include.stream.query_reports import QueryReport
from stack import lifecycle
from stack.provisioning.command_names import COMMANDS, overview

OWN_HELP = {"stream"}


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in OWN_HELP])
def test_every_command_has_help_with_an_example(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])

    assert result.exit_code == 0
    assert f"./foldlake {command}" in result.output


def test_help_works_before_anything_is_installed(tmp_path: Path) -> None:
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


def test_without_java_nothing_is_downloaded_and_the_message_names_the_remedy(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    environment = {
        "PATH": str(python.parent),
        "JAVA_HOME": "/none",
        "FOLDLAKE_TOOLS": str(tmp_path / "tools"),
    }
    # The usual folders of the machine may contain a Java.
    without_java = (
        "import sys; from stack.provisioning import java, launcher; java.USUAL_FOLDERS = ();"
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
def test_an_unknown_name_is_rejected_with_the_available_ones(command: list[str], tmp_path: Path) -> None:
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
    assert "Available:" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (7500, "2 h 05 min"), (90_000, "1 d 1 h")],
)
def test_durations_are_human_readable(seconds: int, text: str) -> None:
    assert duration(seconds) == text


def stream_lines(*flows: FlowStatus, width: int = 140, **status: Any) -> list[str]:  # noqa: ANN401 - fields of StreamStatus
    console = Console(width=width)
    with console.capture() as capture:
        console.print(stream_table(StreamStatus(flows, **status), {}))
    return [" ".join(line.split()) for line in capture.get().splitlines()]


def fold(**changed: Any) -> FlowStatus:  # noqa: ANN401 - fields of FlowStatus
    report = QueryReport("balance/v1", "real time", 3, "", 1, "local", 0.5, task_slots=8)
    flow = FlowStatus("balance/v1", FlowKind.FOLD, "balance", "balance", 1, "live", events=9, report=report)
    return replace(flow, events_behind=7, **changed)


def test_a_query_error_does_not_widen_the_status_table() -> None:
    error = "[KAFKA_DATA_LOSS] Some data may have been lost:\n" + "at org.apache.spark.Frame\n" * 50
    report = QueryReport("balance/v1", "failed", 3, error, 1, "local", 0.5, task_slots=8)

    *_, line = stream_lines(fold(report=report), width=90)

    assert line.startswith("balance v1 live, 9 events, 7 behind, failed, 8 slots, 3 restarts: [K")
    assert line.endswith("…")


def test_status_shows_a_flow_that_the_driver_does_not_report() -> None:
    *_, line = stream_lines(fold(report=None))

    assert line == "balance v1 live, 9 events, 7 behind, not running"


def test_status_shows_why_a_stream_is_unknown_and_what_else_is_known() -> None:
    console = Console(width=80)
    with console.capture() as capture:
        console.print(stream_table("Kafka is not up", {"placement of order-location": Placement.REPLICATED}))

    _, *lines = (" ".join(line.split()) for line in capture.get().splitlines())
    assert lines == ["state unknown", "reason Kafka is not up", "placement of order-location replicated"]


def test_status_says_that_dead_letters_are_stuck() -> None:
    *_, line = stream_lines(sources=(SourceStatus("balance", 0, stuck_for_s=185.2),))

    assert line == "dead letters of balance not written for 3 min; the folds continue"


@pytest.mark.parametrize(
    ("still_s", "latency", "text"),
    [
        (None, Latency.MILLISECONDS, "7 behind, real time, 8 slots, 3 restarts"),
        (None, Latency.SECOND, "7 behind, in batches, real time, 8 slots, 3 restarts"),
        (61.5, Latency.MILLISECONDS, "7 behind, standing still for 1 min, real time, 8 slots, 3 restarts"),
    ],
)
def test_status_says_that_folds_stand_still_or_are_in_batches(
    still_s: float | None, latency: Latency, text: str
) -> None:
    *_, line = stream_lines(fold(still_s=still_s, latency=latency))

    assert line.endswith(text)


def test_status_names_open_transactions_and_event_times_in_the_future() -> None:
    ahead = fold(event_time_ahead=EventTimeAhead("partition=3, offset=8", 3 * 86_400.0), report=None)
    source = SourceStatus("balance", 0, open_transaction=OpenTransaction("balance", 12, 45.0))

    lines = stream_lines(ahead, sources=(source,))

    text = "event time 3 d 0 h ahead of its append time: partition=3, offset=8, not running"
    assert f"balance v1 live, 9 events, 7 behind, {text}" in lines
    assert "transaction on balance open for 45 s: 12 records wait until it ends" in lines


def test_status_shows_the_emit_interval() -> None:
    *_, line = stream_lines(fold(emit_every_s=2.5))

    assert "7 behind, a record per key every 2.5 s, real time" in line


@pytest.mark.parametrize(
    ("failures", "times", "launched_at", "then"),
    [
        (7, "7 times in a row", "", "next launch in 2 min"),
        (1, "once", "2026-05-01T12:12:07+00:00", "launched again 20 s ago"),
    ],
)
def test_status_says_since_when_and_why_the_driver_fails(
    failures: int, times: str, launched_at: str, then: str
) -> None:
    series = LaunchFailures(
        failures=failures,
        since="2026-05-01T12:00:27+00:00",
        last_error="Master must start with local " * 9,
        next_launch_at="2026-05-01T12:14:30+00:00",
        launched_at=launched_at,
    )
    console = Console(width=110)

    with console.capture() as capture:
        console.print(launch_table(series, datetime(2026, 5, 1, 12, 12, 27, tzinfo=UTC)))

    since, error = capture.get().splitlines()
    assert since.rstrip() == f"the driver has failed {times} since 2026-05-01 12:00:27 UTC (12 min); {then}"
    assert error.startswith("last error: Master must start with local")
    assert len(error) == 110


@pytest.mark.parametrize(
    ("words", "names", "options"),
    [
        ([], ["one", "two"], []),
        (["two"], ["two"], []),
        (["two", "one"], ["two", "one"], []),
        (["one", "--seconds", "10"], ["one"], ["--seconds", "10"]),
        (["one", "--customers=400000"], ["one"], ["--customers=400000"]),
        (["one", "--list"], ["one"], ["--list"]),
        (["one", "--", "--seconds", "10"], ["one"], ["--seconds", "10"]),
    ],
)
def test_options_after_a_name_belong_to_the_benchmark(
    words: list[str], names: list[str], options: list[str]
) -> None:
    assert names_and_options(words, ["one", "two"]) == (names, options)


def test_options_after_several_benchmarks_are_rejected() -> None:
    with pytest.raises(SettingsError, match="for a single benchmark only, not for one, two"):
        names_and_options(["one", "two", "--seconds", "10"], ["one", "two"])


def test_options_are_passed_to_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, list[str]]] = []

    def run(name: str, options: list[str]) -> int:
        ran.append((name, options))
        return 0

    monkeypatch.setattr(bench, "_run", run)

    result = CliRunner().invoke(app, ["bench", "latency", "--seconds", "10", "--help", "--unknown=1"])

    assert (result.exit_code, ran) == (0, [("latency", ["--seconds", "10", "--help", "--unknown=1"])])


def test_modules_and_packages_with_a_main_function_are_benchmarks() -> None:
    found = available_benchmarks()

    assert {"latency", "kafka_streams"} <= found.keys()
    assert "support" not in found
    assert found["kafka_streams"].startswith("Foldlake beside Kafka Streams")


def test_an_option_without_a_benchmark_is_rejected() -> None:
    assert CliRunner().invoke(app, ["bench", "--seconds", "10"]).exit_code == 2


def test_up_warns_about_a_misspelt_and_a_renamed_setting_and_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(lifecycle, "start", lambda _settings, wanted, _display: started.append(wanted))
    monkeypatch.setenv("FOLDLAKE_HOME", str(tmp_path))
    monkeypatch.setenv("FOLDLAKE_LAKE_NICENES", "3")
    monkeypatch.setenv("FOLDLAKE_LAKE_EVENTS", "off")

    result = CliRunner().invoke(app, ["up", "--only", "kafka"])

    assert (result.exit_code, started) == (0, [["kafka"]])
    assert "Warning: FOLDLAKE_LAKE_NICENES in the environment is ignored" in result.stderr
    assert "Did you mean FOLDLAKE_LAKE_NICENESS?" in result.stderr
    assert "rename it to FOLDLAKE_LAKE_EVENT_TABLES." in result.stderr
