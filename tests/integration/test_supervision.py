"""Killed processes of the stack are restarted, and no process is left behind, however a start or a stop ends.

Tests of the supervisor alone use servers that only listen; Kafka and the registry, which other tests share, are killed once
each.
"""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from include.kafka.log_reading import log_consumer, read_tail
from include.kafka.topics import Topic, ensure_topics
from include.settings import CHECKOUT, Settings
from stack.lifecycle import BusyError, start, stop
from stack.stack_guard import guarded
from stack.supervision.configuration import socket_path
from stack.supervision.process import PortTakenError, Process
from stack.supervision.stray_processes import find_stray_processes
from stack.supervision.supervisor import Supervisor
from tests.support import dummy_servers
from tests.support.dummy_servers import NAMES, command_line, is_replaced, pid, ready, restarts
from tests.support.http.local_http import HTTP
from tests.support.temporary_stack import temporary_settings
from tests.support.waiting import wait_until


@pytest.fixture
def half_started(dummies_home: Settings) -> Settings:
    """The same stack after a start that was killed with -9 while waiting for the servers."""
    dummy_servers.hold_back(dummies_home)
    with command_line(dummies_home, "up", "--only", "kafka,registry") as up:
        try:
            wait_until(
                lambda: all(Supervisor(dummies_home).states()[name].is_running for name in NAMES),
                "both servers run",
            )
        finally:
            up.kill()
    dummy_servers.release(dummies_home)
    return dummies_home


def test_starting_what_is_up_changes_nothing(dummies: Settings) -> None:
    before = {name: pid(dummies, name) for name in NAMES}

    start(dummies, NAMES)

    assert {name: pid(dummies, name) for name in NAMES} == before


def test_a_killed_server_comes_back_and_its_restart_is_counted(dummies: Settings) -> None:
    killed, other = pid(dummies, "kafka"), pid(dummies, "registry")

    os.kill(killed, signal.SIGKILL)

    wait_until(lambda: is_replaced(dummies, "kafka", killed), "another server is up")
    assert pid(dummies, "registry") == other
    assert (restarts(dummies, "kafka"), restarts(dummies, "registry")) == (1, 0)


def test_a_killed_broker_comes_back_with_what_it_acknowledged(settings: Settings) -> None:
    kafka = settings.kafka_connection
    ensure_topics(AdminClient(kafka.client_settings), [Topic("kept", 1)], 1)
    producer = Producer({**kafka.client_settings, "acks": "all", "log_level": 0})
    for number in range(1000):
        producer.produce("kept", str(number).encode())
    assert producer.flush(30) == 0
    killed, before = pid(settings, "kafka"), restarts(settings, "kafka")

    os.kill(killed, signal.SIGKILL)

    wait_until(lambda: is_replaced(settings, "kafka", killed), "another broker is up")
    consumer = log_consumer(kafka)
    values = [int(message.value() or b"") for message in read_tail(consumer, "kept", 0)]
    consumer.close()
    assert values == list(range(1000))
    assert restarts(settings, "kafka") == before + 1


def test_a_killed_registry_comes_back_with_the_schemas_it_acknowledged(settings: Settings) -> None:
    schema = {"schema": '{"type":"record","name":"Kept","fields":[]}'}
    subject = f"{settings.registry.url}/subjects/kept/versions"
    registered = HTTP.post(subject, json=schema).json()
    killed = pid(settings, "registry")

    os.kill(killed, signal.SIGKILL)

    wait_until(lambda: is_replaced(settings, "registry", killed), "another registry is up")
    found = HTTP.get(f"{subject}/1").json()
    assert found["id"] == registered["id"]


def test_a_process_whose_settings_changed_is_restarted_and_the_others_are_not(dummies: Settings) -> None:
    kafka, registry = pid(dummies, "kafka"), pid(dummies, "registry")

    start(dummies.changed(kafka_heap_mb=400), NAMES)

    assert pid(dummies, "kafka") != kafka
    assert pid(dummies, "registry") == registry


def test_stopping_leaves_no_process_and_stopping_again_does_nothing(dummies: Settings) -> None:
    assert stop(dummies) == 0
    assert find_stray_processes(dummies.home) == []
    assert stop(dummies) == 0


def test_a_stop_that_fails_leaves_no_process(dummies: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_settings: Settings) -> list[Process]:
        raise ImportError("a component's module is broken")

    monkeypatch.setattr("stack.lifecycle.all_processes", fail)

    with pytest.raises(ImportError):
        stop(dummies)

    assert find_stray_processes(dummies.home) == []


def test_after_the_supervisor_was_killed_a_stop_leaves_no_process(dummies: Settings) -> None:
    supervisord = Supervisor(dummies).pid()
    assert supervisord is not None
    os.kill(supervisord, signal.SIGKILL)

    assert stop(dummies) == 2
    assert find_stray_processes(dummies.home) == []


def test_after_the_supervisor_was_killed_a_start_restarts_everything(dummies: Settings) -> None:
    orphan = pid(dummies, "kafka")
    supervisord = Supervisor(dummies).pid()
    assert supervisord is not None
    os.kill(supervisord, signal.SIGKILL)

    start(dummies, NAMES)

    assert not psutil.pid_exists(orphan)
    assert all(ready(dummies, name) for name in NAMES)


def test_a_stop_ends_every_process_of_a_start_that_was_killed_halfway(
    half_started: Settings,
) -> None:
    assert find_stray_processes(half_started.home) != []

    stop(half_started)

    assert find_stray_processes(half_started.home) == []


def test_a_start_continues_where_a_killed_one_stopped(half_started: Settings) -> None:
    before = {name: pid(half_started, name) for name in NAMES}

    start(half_started, NAMES)

    assert all(ready(half_started, name) for name in NAMES)
    assert {name: pid(half_started, name) for name in NAMES} == before


def test_one_start_at_a_time(dummies_home: Settings) -> None:
    dummy_servers.hold_back(dummies_home)
    with command_line(dummies_home, "up", "--only", "kafka,registry") as up:
        try:
            wait_until(lambda: Supervisor(dummies_home).pid() is not None, "the supervisor runs")
            with pytest.raises(BusyError, match=str(up.pid)):
                start(dummies_home, NAMES)
        finally:
            up.kill()


def test_a_taken_port_is_reported_with_its_holder_and_the_setting_that_changes_it(
    dummies_home: Settings,
) -> None:
    with socket.create_server(("127.0.0.1", dummies_home.kafka.port)), command_line(dummies_home, "up") as up:
        output, _ = up.communicate()

    assert up.returncode == 1
    assert f"Port {dummies_home.kafka.port}, needed by kafka, is in use by pid {os.getpid()}" in output
    assert "set FOLDLAKE_KAFKA_PORT to a free port" in output
    assert find_stray_processes(dummies_home.home) == []


def test_a_taken_port_is_found_before_anything_starts(dummies_home: Settings) -> None:
    with (
        socket.create_server(("127.0.0.1", dummies_home.registry.port)),
        pytest.raises(PortTakenError, match="FOLDLAKE_REGISTRY_PORT"),
    ):
        start(dummies_home, NAMES)

    assert Supervisor(dummies_home).pid() is None


def test_other_homes_are_left_alone(dummies: Settings, settings: Settings) -> None:
    before = pid(settings, "kafka")

    stop(dummies)

    assert pid(settings, "kafka") == before
    assert ready(settings, "kafka")


def test_a_home_with_a_long_path_works(tmp_path: Path) -> None:
    settings = temporary_settings(tmp_path / ("long " * 20) / "100% home")
    with guarded(settings):
        start(settings, ("registry",))

        assert ready(settings, "registry")
        assert len(str(socket_path(settings.home))) < 108


def test_a_killed_test_run_leaves_no_process() -> None:
    script = (
        "import time\n"
        "from tests.support.dummy_servers import install\n"
        "from tests.support.temporary_stack import temporary_stack\n"
        "install()\n"
        "with temporary_stack(('registry',)) as settings:\n"
        "    print(settings.home, flush=True); time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
        start_new_session=True,
    ) as run:
        assert run.stdout is not None
        home = Path(run.stdout.readline().strip())
        assert find_stray_processes(home) != []
        os.killpg(run.pid, signal.SIGKILL)

    wait_until(lambda: find_stray_processes(home) == [], "no process is left")
