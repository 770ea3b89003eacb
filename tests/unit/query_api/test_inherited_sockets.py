"""Granian serves on inherited sockets, one for each worker, and is replaced under load without a failed request.

`InheritingServer` overrides two methods of granian that are not part of its interface: these tests fail if granian changes them.
"""

import http.client
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from include.settings import Settings, settings_environment
from query_api import inherited_sockets
from stack.supervision import socket_holder
from tests.support.http import inheriting_server
from tests.support.http.held_server import HeldServer, described, held_server
from tests.support.http.http_server import NOWHERE
from tests.support.http.inheriting_server import WORKERS
from tests.support.http.local_http import HTTP
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until

TIMEOUT_S = 30.0


def ask(connection: http.client.HTTPConnection, path: str = "/") -> tuple[str, str]:
    """Return the name of the server and the number of the process that responds."""
    connection.request("GET", path)
    name, pid = connection.getresponse().read().decode().split()
    return name, pid


def ask_anew(port: int) -> tuple[str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        return ask(connection)
    finally:
        connection.close()


def is_up(port: int) -> bool:
    try:
        return bool(ask_anew(port))
    except (OSError, http.client.HTTPException):
        return False


def workers(held: HeldServer, name: str) -> set[str]:
    """Wait until each worker of a server has responded, and return their processes."""
    found: set[str] = set()

    def have_responded() -> bool:
        server, pid = ask_anew(held.port)
        assert server == name
        found.add(pid)
        return len(found) == WORKERS

    wait_until(have_responded, "each worker responds", TIMEOUT_S, poll_s=0.0)
    return found


def granian(folder: Path, name: str, ready_file: Path | None = None) -> Path:
    variables = {"PROMETHEUS_MULTIPROC_DIR": str(folder), "READY_FILE": str(ready_file or folder)}
    return described(folder, name, program=("-m", inheriting_server.__name__), **variables)


@pytest.fixture
def held(tmp_path: Path) -> Iterator[HeldServer]:
    with held_server(tmp_path, granian(tmp_path, "old"), is_up) as found:
        yield found


@contextmanager
def clients(port: int) -> Iterator[list[str]]:
    """Send requests during a block, with kept connections and with a connection each; yield what failed."""
    is_over = threading.Event()
    failed: list[str] = []

    def send(*, keep: bool) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        while not is_over.is_set():
            try:
                ask(connection)
            except (OSError, http.client.HTTPException) as error:
                failed.append(repr(error))
                connection.close()
            if not keep:
                connection.close()
        connection.close()

    threads = [threading.Thread(target=send, kwargs={"keep": number % 2 == 0}) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        yield failed
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def test_no_request_fails_while_the_server_is_replaced(held: HeldServer, tmp_path: Path) -> None:
    before = workers(held, "old")

    with clients(held.port) as failed:
        held.request(granian(tmp_path, "new"), "1", TIMEOUT_S)
        assert held.error("1") == ""
        after = workers(held, "new")

    assert failed == []
    assert before.isdisjoint(after)


def test_a_killed_worker_is_replaced_on_its_socket(held: HeldServer) -> None:
    before = workers(held, "old")
    (killed, *_) = before

    os.kill(int(killed), signal.SIGKILL)

    wait_until(lambda: not psutil.pid_exists(int(killed)), "it has ended", TIMEOUT_S)
    assert len(workers(held, "old") - before) == 1


def test_a_new_server_that_must_serve_waits_until_its_node_is_ready(held: HeldServer, tmp_path: Path) -> None:
    ready_file = tmp_path / "ready"
    held.request(granian(tmp_path, "new", ready_file), "1", TIMEOUT_S, must_serve=True)
    wait_until(lambda: len(held.servers()) == 2, "the new server runs", TIMEOUT_S)
    new = max(held.servers(), key=lambda server: server.create_time())
    wait_until(lambda: len(new.children()) == WORKERS, "its workers run", TIMEOUT_S)
    assert ask_anew(held.port)[0] == "old"

    ready_file.touch()

    assert held.error("1") == ""
    assert ask_anew(held.port)[0] == "new"


def test_the_watchdog_kills_no_worker_that_drains(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (port,) = free_ports(1)
    settings = Settings.of(
        home=tmp_path,
        node_port=port,
        kafka_bootstrap=NOWHERE,
        schema_registry_url=f"http://{NOWHERE}",
        node_http_worker_timeout_s=3,
    )

    def query_node(name: str) -> Path:
        return described(tmp_path, name, program=("-m", "query_api.server"), **settings_environment(settings))

    def is_alive(port: int) -> bool:
        return HTTP.get(f"http://127.0.0.1:{port}/healthz").is_success

    with held_server(tmp_path, query_node("old"), is_alive, drain_s=7.0, port=port) as held:
        held.request(query_node("new"), "1", TIMEOUT_S)
        assert held.error("1") == ""

    log = capfd.readouterr()
    assert "Started worker-2" in log.out + log.err
    assert "has not answered" not in log.out + log.err


def test_both_programs_use_the_same_variables() -> None:
    names = ("SOCKETS", "READY_PIPE", "DRAIN_PIPE", "MUST_SERVE")

    assert [getattr(inherited_sockets, name) for name in names] == [
        getattr(socket_holder, name) for name in names
    ]
