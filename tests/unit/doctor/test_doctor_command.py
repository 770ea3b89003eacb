"""`./foldlake doctor` works with and without the tools, and with wrong settings; its exit status says whether there is a problem."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import psutil
import pytest

from include.settings import CHECKOUT, Settings
from stack.doctor import unprepared
from stack.doctor.finding import Finding, State, as_text, report
from stack.doctor.unprepared import PORTS, needed_ports
from stack.lifecycle import all_processes
from stack.provisioning.launcher import setting
from stack.supervision.process import ports_of
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until

FINDINGS = [
    Finding("Java", State.OK, "17"),
    Finding("memory", State.WARNING, "5.0 GB", "6 GB", "Stop other programs."),
    Finding("port 8080", State.PROBLEM, "in use", action="Stop it."),
]


def doctor(
    command: list[str], environment: Mapping[str, str], *options: str
) -> "subprocess.CompletedProcess[str]":
    """Run the command without registries: an index and a mirror that refuse connections at once."""
    (port,) = free_ports(1)
    refused = f"http://127.0.0.1:{port}"
    own = {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": refused, "FOLDLAKE_MAVEN_MIRROR": refused}
    return subprocess.run(
        [*command, *options],
        env={"PATH": os.environ["PATH"], **own, **environment},
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
    )


def by_check(done: "subprocess.CompletedProcess[str]") -> dict[str, dict[str, Any]]:
    assert done.stdout, done.stderr
    return {finding["check"]: finding for finding in json.loads(done.stdout)["findings"]}


@pytest.fixture
def free() -> dict[str, str]:
    """Free ports for everything."""
    variables = [name for name in PORTS if name != "FOLDLAKE_QUERY_PORTS"]
    *ports, node = map(str, free_ports(len(variables) + 1))
    return {**dict(zip(variables, ports, strict=True)), "FOLDLAKE_QUERY_PORTS": node}


def test_before_the_preparation_the_machine_is_examined_and_nothing_is_prepared(
    tmp_path: Path, free: dict[str, str]
) -> None:
    environment = {**free, "FOLDLAKE_TOOLS": str(tmp_path / "tools"), "FOLDLAKE_HOME": str(tmp_path / "home")}
    with socket.create_server(("127.0.0.1", int(free["FOLDLAKE_AIRFLOW_PORT"]))):
        done = doctor([sys.executable, str(CHECKOUT / "foldlake"), "doctor"], environment, "--json")

    found = by_check(done)
    taken = found.pop(f"port {free['FOLDLAKE_AIRFLOW_PORT']}")
    assert done.returncode == 1
    assert (taken["state"], taken["needed"]) == ("problem", "free for airflow-api-server")
    assert "FOLDLAKE_AIRFLOW_PORT" in taken["action"]
    assert {found.pop("package index")["state"], found.pop("Maven repository")["state"]} == {"problem"}
    assert found.pop("clock")["state"] == "skipped"
    assert found.keys() >= {"Python", "Java", "memory", "disk of the tools", "virtual environments"}
    assert list(tmp_path.iterdir()) == []


def test_before_the_preparation_the_arguments_are_checked(tmp_path: Path) -> None:
    command = [sys.executable, str(CHECKOUT / "foldlake"), "doctor"]

    done = doctor(command, {"FOLDLAKE_TOOLS": str(tmp_path / "tools")}, "--jsn")

    assert done.returncode == 2
    assert "./foldlake doctor: error: unrecognized arguments: --jsn" in done.stderr


def test_with_the_tools_nothing_is_a_problem_without_registries(tmp_path: Path, free: dict[str, str]) -> None:
    environment = {**free, "FOLDLAKE_TOOLS": str(Settings().tools), "FOLDLAKE_HOME": str(tmp_path / "home")}

    done = doctor([sys.executable, "-m", "cli", "doctor"], environment, "--json")

    problems = {name: finding for name, finding in by_check(done).items() if finding["state"] == "problem"}
    assert problems == {}
    assert done.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_setting_is_a_problem_and_the_machine_is_examined(
    tmp_path: Path, free: dict[str, str]
) -> None:
    environment = {**free, "FOLDLAKE_KAFKA_PORT": "many", "FOLDLAKE_HOME": str(tmp_path / "home")}
    environment |= {"FOLDLAKE_TOOLS": str(Settings().tools), "FOLDLAKE_KAFKA_POTR": "9092"}

    done = doctor([sys.executable, "-m", "cli", "doctor"], environment)

    assert done.returncode == 1
    assert "warning   settings               FOLDLAKE_KAFKA_POTR in the environment is ignored" in done.stdout
    assert "Did you mean FOLDLAKE_KAFKA_PORT?" in done.stdout
    assert "FOLDLAKE_KAFKA_PORT" in done.stdout
    assert "a port is no number" in done.stdout
    assert "Traceback" not in done.stderr


def test_ports_before_the_preparation_are_those_of_the_stack() -> None:
    defaults = partial(setting, environment={}, env_file=CHECKOUT / ".env.example")
    settings = Settings.of()
    stacks = {
        (variable, number)
        for process in all_processes(settings)
        for variable, number in ports_of(process).items()
    }

    assert {(port.setting, port.number) for port in needed_ports(defaults)} == stacks


@pytest.mark.parametrize("name", ["supervisord", "another"])
def test_ports_of_a_running_stack_are_its_own_before_the_preparation(
    tmp_path: Path, free: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an upgrade, the stack still runs while the new tools are not installed."""
    for variable, port in free.items():
        monkeypatch.setenv(variable, port)
    command = [sys.executable, "-c", "import time; time.sleep(600)", name]
    with (
        subprocess.Popen(command) as process,
        socket.create_server(("127.0.0.1", int(free["FOLDLAKE_KAFKA_PORT"]))),
    ):
        wait_until(lambda: name in psutil.Process(process.pid).cmdline(), "it has executed its program")
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "supervisord.pid").write_text(f"{process.pid}\n")
        try:
            (finding,) = unprepared._check_ports(tmp_path)
        finally:
            process.kill()

    is_own = name == "supervisord"
    assert finding.state is (State.OK if is_own else State.PROBLEM)
    assert finding.check == ("ports" if is_own else f"port {free['FOLDLAKE_KAFKA_PORT']}")


def test_the_report_shows_the_value_found_the_value_needed_and_what_to_do() -> None:
    output = StringIO()

    report(FINDINGS, is_json=False, output=output)

    assert output.getvalue().splitlines() == [
        "ok        Java                   17",
        "warning   memory                 5.0 GB; needed: 6 GB",
        "          Stop other programs.",
        "problem   port 8080              in use",
        "          Stop it.",
        "",
        "1 problem, 1 warning.",
    ]
    assert as_text(FINDINGS[0], color=True).startswith("\x1b[32mok ")


@pytest.mark.parametrize("is_json", [True, False])
def test_only_a_problem_gives_exit_status_1(*, is_json: bool) -> None:
    output = StringIO()

    assert [report(found, is_json=is_json, output=output) for found in (FINDINGS, FINDINGS[:2], [])] == [
        1,
        0,
        0,
    ]
    assert ("No problems, 1 warning." in output.getvalue()) is not is_json


def test_a_finding_is_shown_before_the_next_check_begins() -> None:
    output = StringIO()

    def findings() -> Iterator[Finding]:
        yield FINDINGS[0]
        assert "Java" in output.getvalue()
        yield FINDINGS[1]

    assert report(findings(), is_json=False, output=output) == 0
