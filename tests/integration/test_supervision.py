"""Processes of the stack come back when they are killed, and none is left behind, however a start or a stop goes."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import requests
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from include.kafka.log_reading import log_consumer, read_tail
from include.kafka.topics import Topic, ensure_topics
from include.settings import CHECKOUT, Settings
from stack.lifecycle import BusyError, all_processes, start, stop
from stack.process_status import process_statuses
from stack.settings_environment import settings_environment
from stack.stack_guard import guarded
from stack.supervision.ports import PortTakenError
from stack.supervision.process import Process
from stack.supervision.stray_processes import find_leftovers
from stack.supervision.supervisor import Supervisor, socket_path
from tests.support.temporary_stack import temporary_settings
from tests.support.waiting import wait_until

SERVERS = ("kafka", "registry")


def ready(settings: Settings, name: str) -> bool:
    return next(process for process in all_processes(settings) if process.name == name).is_ready()


def pid(settings: Settings, name: str) -> int:
    found = Supervisor(settings).states()[name].pid
    assert found is not None
    return found


def command_line(settings: Settings, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cli", *arguments],
        env={**os.environ, **settings_environment(settings), "PYTHONPATH": str(CHECKOUT)},
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture
def new_home(tmp_path: Path) -> Iterator[Settings]:
    """Settings of a stack of which nothing runs yet."""
    settings = temporary_settings(tmp_path / "home")
    with guarded(settings):
        yield settings


@pytest.fixture
def running(new_home: Settings) -> Settings:
    """The same with Kafka and the schema registry up."""
    start(new_home, SERVERS)
    return new_home


def test_starting_what_is_up_changes_nothing(running: Settings) -> None:
    before = {name: pid(running, name) for name in SERVERS}

    start(running, SERVERS)

    assert {name: pid(running, name) for name in SERVERS} == before


def test_a_killed_broker_comes_back_with_what_it_acknowledged(running: Settings) -> None:
    ensure_topics(AdminClient({"bootstrap.servers": running.kafka.bootstrap_servers}), [Topic("kept", 1)], 1)
    producer = Producer({"bootstrap.servers": running.kafka.bootstrap_servers, "acks": "all", "log_level": 0})
    for number in range(1000):
        producer.produce("kept", str(number).encode())
    assert producer.flush(30) == 0
    killed = pid(running, "kafka")

    os.kill(killed, signal.SIGKILL)

    wait_until(lambda: ready(running, "kafka") and pid(running, "kafka") != killed, "another broker is up")
    consumer = log_consumer(running.kafka.bootstrap_servers)
    values = [int(message.value() or b"") for message in read_tail(consumer, "kept", 0)]
    consumer.close()
    assert values == list(range(1000))
    assert {status.name: status.restarts for status in process_statuses(running)}["kafka"] == 1


def test_a_killed_registry_comes_back_with_the_schemas_it_acknowledged(running: Settings) -> None:
    schema = {"schema": '{"type":"record","name":"Kept","fields":[]}'}
    registered = requests.post(
        f"{running.registry.url}/subjects/kept/versions", json=schema, timeout=10
    ).json()
    killed = pid(running, "registry")

    os.kill(killed, signal.SIGKILL)

    wait_until(
        lambda: ready(running, "registry") and pid(running, "registry") != killed, "another registry is up"
    )
    found = requests.get(f"{running.registry.url}/subjects/kept/versions/1", timeout=10).json()
    assert found["id"] == registered["id"]


def test_a_process_whose_settings_changed_is_started_anew_and_the_others_are_not(running: Settings) -> None:
    kafka, registry = pid(running, "kafka"), pid(running, "registry")

    start(running.changed(kafka_heap_mb=400), SERVERS)

    assert pid(running, "kafka") != kafka
    assert pid(running, "registry") == registry


def test_stopping_leaves_no_process_and_stopping_again_does_nothing(running: Settings) -> None:
    assert stop(running) == 0
    assert find_leftovers(running.home) == []
    assert stop(running) == 0


def test_a_stop_that_fails_leaves_no_process_all_the_same(
    running: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_settings: Settings) -> list[Process]:
        raise ImportError("a component's module is broken")

    monkeypatch.setattr("stack.lifecycle.all_processes", fail)

    with pytest.raises(ImportError):
        stop(running)

    assert find_leftovers(running.home) == []


def test_after_the_supervisor_was_killed_a_stop_leaves_no_process(running: Settings) -> None:
    supervisord = Supervisor(running).pid()
    assert supervisord is not None
    os.kill(supervisord, signal.SIGKILL)

    assert stop(running) == 2
    assert find_leftovers(running.home) == []


def test_after_the_supervisor_was_killed_a_start_starts_everything_anew(running: Settings) -> None:
    orphan = pid(running, "kafka")
    supervisord = Supervisor(running).pid()
    assert supervisord is not None
    os.kill(supervisord, signal.SIGKILL)

    start(running, SERVERS)

    assert not psutil.pid_exists(orphan)
    assert all(ready(running, name) for name in SERVERS)


def test_a_start_that_was_killed_half_way_leaves_nothing_that_a_stop_does_not_end(new_home: Settings) -> None:
    with command_line(new_home, "up", "--only", "kafka,registry") as up:
        wait_until(
            lambda: any(s.is_running for s in Supervisor(new_home).states().values()), "a process runs"
        )
        up.kill()

    stop(new_home)

    assert find_leftovers(new_home.home) == []


def test_a_start_goes_on_where_a_killed_one_stopped(new_home: Settings) -> None:
    with command_line(new_home, "up", "--only", "kafka,registry") as up:
        wait_until(
            lambda: any(s.is_running for s in Supervisor(new_home).states().values()), "a process runs"
        )
        up.kill()

    start(new_home, SERVERS)

    assert all(ready(new_home, name) for name in SERVERS)


def test_one_start_at_a_time(new_home: Settings) -> None:
    with command_line(new_home, "up", "--only", "kafka,registry") as up:
        wait_until(lambda: Supervisor(new_home).pid() is not None, "the supervisor runs")
        with pytest.raises(BusyError, match=str(up.pid)):
            start(new_home, SERVERS)


def test_a_taken_port_is_named_with_its_holder_and_the_setting_that_moves_it(new_home: Settings) -> None:
    with socket.create_server(("127.0.0.1", new_home.kafka.port)), command_line(new_home, "up") as up:
        said, _ = up.communicate()

    assert up.returncode == 1
    assert f"Port {new_home.kafka.port}, for kafka, is taken by pid {os.getpid()}" in said
    assert "set FOLDLAKE_KAFKA_PORT to a free port" in said
    assert find_leftovers(new_home.home) == []


def test_a_taken_port_is_found_before_anything_starts(new_home: Settings) -> None:
    with (
        socket.create_server(("127.0.0.1", new_home.registry.port)),
        pytest.raises(PortTakenError, match="FOLDLAKE_REGISTRY_PORT"),
    ):
        start(new_home, SERVERS)

    assert Supervisor(new_home).pid() is None


def test_other_homes_are_left_alone(running: Settings, settings: Settings) -> None:
    before = pid(settings, "kafka")

    stop(running)

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
        "import sys, time; from tests.support.temporary_stack import temporary_stack\n"
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
        assert find_leftovers(home) != []
        os.killpg(run.pid, signal.SIGKILL)

    wait_until(lambda: find_leftovers(home) == [], "no process is left")
