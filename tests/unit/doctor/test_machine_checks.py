"""Python, Java, memory, disks and ports: what is too old, too small, new or taken is named, with what to do."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from include.settings import Settings
from stack.doctor.finding import State
from stack.doctor.machine_checks import (
    NeededPort,
    check_home_disk,
    check_java,
    check_memory,
    check_ports,
    check_python,
    check_tools_disk,
)
from stack.doctor.prepared import check_stack_ports
from stack.provisioning import java
from stack.provisioning.layout import DOWNLOADED, Layout
from tests.support.faults.small_disk import small_disk
from tests.support.temporary_stack import free_ports, temporary_settings

GB = 10**9


@pytest.mark.parametrize("version", [(3, 11, 2), (3, 11, 14), (3, 12, 0), (3, 12, 9)])
def test_a_python_of_the_readme_is_ok(version: tuple[int, int, int]) -> None:
    assert check_python(version).state is State.OK


@pytest.mark.parametrize(
    ("version", "needed", "action"),
    [
        ((3, 13, 0), "3.11 or 3.12", "Install Python 3.11 with its venv module"),
        ((3, 11, 0), "3.11.2 or newer", "Install its updates"),
    ],
)
def test_another_python_is_a_warning(version: tuple[int, int, int], needed: str, action: str) -> None:
    finding = check_python(version)

    assert (finding.state, finding.needed) == (State.WARNING, needed)
    assert action in finding.action


def test_a_java_that_is_too_new_is_named_with_the_packages_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "USUAL_FOLDERS", ())
    binary = tmp_path / "bin" / "java"
    binary.parent.mkdir()
    binary.write_text("#!/bin/sh\necho 'openjdk version \"26.0.1\" 2026-04-21' >&2\n")
    binary.chmod(0o755)

    finding = check_java({"JAVA_HOME": str(tmp_path), "PATH": ""})

    assert finding.state is State.PROBLEM
    assert finding.found == f"{binary}: is Java 26"
    assert finding.needed == "17 to 25"
    assert "openjdk-17-jdk-headless" in finding.action


def test_the_java_of_this_machine_is_found() -> None:
    assert check_java().state is State.OK


@pytest.mark.parametrize(
    ("total", "available", "state"),
    [
        (3.9, None, State.PROBLEM),
        (4.1, None, State.WARNING),
        (6.4, None, State.OK),
        (16.0, 5.0, State.WARNING),
        (16.0, 12.0, State.OK),
    ],
)
def test_memory_is_enough_for_the_stack_and_a_lake_job(
    total: float, available: float | None, state: State
) -> None:
    finding = check_memory(int(total * GB), None if available is None else int(available * GB))

    assert finding.state is state
    assert f"{total} GB" in finding.found
    assert bool(finding.action) is (state is not State.OK)


def test_a_part_of_the_stack_needs_less_memory() -> None:
    finding = check_memory(GB, GB // 2, has_whole_stack=False)

    assert (finding.state, finding.needed) == (State.OK, "")


def test_the_memory_of_this_machine_is_read() -> None:
    assert check_memory().found.endswith(" GB")


def test_a_small_disk_is_a_problem_for_the_tools_until_they_are_installed(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", size_mb=4) as disk:
        layout = Layout(disk.path / "not" / "made" / "yet")

        finding = check_tools_disk(layout)
        assert (finding.state, finding.needed) == (State.PROBLEM, "6 GB")
        assert "FOLDLAKE_TOOLS" in finding.action
        assert not layout.root.exists()

        for part in DOWNLOADED:
            layout.mark_ready(part)
        assert check_tools_disk(layout).state is State.OK


def test_a_disk_with_room_for_few_files_is_a_problem(tmp_path: Path) -> None:
    finding = check_tools_disk(Layout(tmp_path), needed_gb=0, needed_files=10**18)

    assert finding.state is State.PROBLEM
    assert "more files" in finding.found


@pytest.mark.parametrize(
    ("problem_gb", "warning_gb", "state"),
    [(0.0, 0.0, State.OK), (0.0, 10.0**9, State.WARNING), (10.0**9, 10.0**9, State.PROBLEM)],
)
def test_the_disk_of_the_data_needs_room_for_the_log(
    tmp_path: Path, problem_gb: float, warning_gb: float, state: State
) -> None:
    finding = check_home_disk(tmp_path / "home", problem_gb, warning_gb)

    assert finding.state is state
    assert ("FOLDLAKE_HOME" in finding.action) is (state is not State.OK)


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_free_port_is_ok() -> None:
    (port,) = free_ports(1)

    (finding,) = check_ports([NeededPort(port, "FOLDLAKE_KAFKA_PORT", "kafka")], str)

    assert (finding.state, finding.found) == (State.OK, f"free: {port}")


def test_a_port_in_use_is_a_problem(taken: int) -> None:
    needed = [NeededPort(taken, "FOLDLAKE_KAFKA_PORT", "kafka")]

    (finding,) = check_ports(needed, lambda port: f"the holder of {port}")

    assert (finding.check, finding.state) == (f"port {taken}", State.PROBLEM)
    assert finding.found == f"in use by the holder of {taken}"
    assert finding.needed == "free for kafka"
    assert finding.action == "Stop that process, or set FOLDLAKE_KAFKA_PORT to a free port."


def test_a_port_for_two_processes_is_a_problem() -> None:
    (port,) = free_ports(1)
    needed = [
        NeededPort(port, "FOLDLAKE_KAFKA_PORT", "kafka"),
        NeededPort(port, "FOLDLAKE_AIRFLOW_PORT", "airflow-api-server"),
    ]

    (finding,) = check_ports(needed, str)

    assert (finding.state, finding.found) == (State.PROBLEM, "needed by kafka and by airflow-api-server")
    assert finding.action == "Set FOLDLAKE_KAFKA_PORT or FOLDLAKE_AIRFLOW_PORT to another port."


def test_a_number_that_is_no_port_is_a_problem() -> None:
    (finding,) = check_ports([NeededPort(70_000, "FOLDLAKE_KAFKA_PORT", "kafka")], str)

    assert (finding.state, finding.found) == (State.PROBLEM, "not a port")
    assert "FOLDLAKE_KAFKA_PORT" in finding.action


def test_the_holder_of_a_stacks_port_is_named(tmp_path: Path, taken: int) -> None:
    settings = temporary_settings(tmp_path, registry_port=taken)

    (finding,) = check_stack_ports(settings, running=set())

    assert finding.found.startswith(f"in use by pid {os.getpid()} (")
    assert "FOLDLAKE_REGISTRY_PORT" in finding.action


def test_ports_of_running_processes_are_their_own(tmp_path: Path, taken: int) -> None:
    settings = temporary_settings(tmp_path, registry_port=taken)

    (finding,) = check_stack_ports(settings, running={"registry"})

    assert finding.state is State.OK
    assert str(taken) not in finding.found


def test_ports_of_servers_elsewhere_are_not_needed(tmp_path: Path, taken: int) -> None:
    settings = Settings.of(
        **temporary_settings(tmp_path, registry_port=taken).by_variable()
        | {"schema_registry_url": "http://registry.example:8081"}
    )

    (finding,) = check_stack_ports(settings, running=set())

    assert finding.state is State.OK
