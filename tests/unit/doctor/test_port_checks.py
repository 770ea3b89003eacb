"""A port in use is named with its holder and the setting that changes it; the running stack's own ports are fine."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from include.settings import Settings
from stack.doctor.finding import State
from stack.doctor.machine_checks import NeededPort, check_ports
from stack.doctor.prepared import check_stack_ports
from tests.support.temporary_stack import free_ports, temporary_settings


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
