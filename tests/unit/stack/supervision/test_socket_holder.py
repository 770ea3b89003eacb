"""A server on held sockets is replaced without a refused connection; one that fails leaves the present one in place."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from stack.supervision import socket_holder
from tests.support.http.held_server import (
    ENDS,
    NEVER_READY,
    TIMEOUT_S,
    WORKERS,
    HeldServer,
    described,
    held_server,
    response,
)
from tests.support.waiting import wait_until

# A process that needs what the one before has until its end.
WAITS = """
import fcntl, os, signal
from include.process import die_with_parent, launcher_pid
from stack.supervision.socket_holder import READY_PIPE

die_with_parent(launcher_pid())
with open(os.environ["FILE"], "a") as file:
    os.write(int(os.environ[READY_PIPE]), b"ready\\n")
    fcntl.flock(file, fcntl.LOCK_EX)
    file.write(os.environ["NAME"] + "\\n")
    file.flush()
    signal.pause()
"""


@pytest.fixture
def held(tmp_path: Path) -> Iterator[HeldServer]:
    """The server `old`."""
    with held_server(tmp_path, described(tmp_path, "old")) as found:
        yield found


def starting(held: HeldServer, count: int = 2) -> list[psutil.Process]:
    """Wait until this number of servers run, and return them: the newest one is the last."""
    wait_until(lambda: len(held.servers()) == count, f"{count} servers run", TIMEOUT_S)
    return sorted(held.servers(), key=lambda server: server.create_time())


def has_handler(process: psutil.Process) -> bool:
    """Whether a process handles SIGTERM, which the server does once it ends with its parent."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    handled = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(handled.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def assert_stays(held: HeldServer, tmp_path: Path) -> None:
    assert response(held.port) == "old"
    assert held.files.description() == str(tmp_path / "old.description")
    assert len(held.servers()) == 1
    assert held.process.poll() is None


def test_every_connection_has_a_response_while_servers_are_replaced(held: HeldServer, tmp_path: Path) -> None:
    with held.connections():
        for name in ("new", "newer"):
            held.request(described(tmp_path, name), name)
            assert held.error(name) == ""
            assert response(held.port) == name

    assert set(held.responses) == {"old", "new", "newer"}
    assert held.files.description() == str(tmp_path / "newer.description")
    assert len(held.servers()) == 1


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (ENDS, "it ended with status 3"),
        (NEVER_READY, "it was not ready after 1.0 s"),
    ],
)
def test_a_new_server_that_fails_leaves_the_present_one(
    held: HeldServer, tmp_path: Path, fault: str, reason: str
) -> None:
    with held.connections():
        held.request(described(tmp_path, "new", fault), "1", ready_timeout_s=1.0)

        assert reason in held.error("1")
        assert_stays(held, tmp_path)

    assert not [one for one in held.responses if "Error" in one]
    # The next request replaces it.
    held.request(described(tmp_path, "newer"), "2")
    assert held.error("2") == ""
    assert response(held.port) == "newer"


def test_a_new_server_that_ends_while_it_takes_over_leaves_the_present_one(
    tmp_path: Path,
) -> None:
    with held_server(tmp_path, described(tmp_path, "old"), trial_s=600.0) as held, held.connections():
        held.request(described(tmp_path, "new"), "1")
        wait_until(lambda: "new" in held.responses, "both accept connections", TIMEOUT_S)
        starting(held)[-1].kill()

        assert held.error("1") == "it ended with status -9"
        assert_stays(held, tmp_path)


def test_the_new_server_takes_over_from_one_that_has_ended(held: HeldServer, tmp_path: Path) -> None:
    held.request(described(tmp_path, "new"), "1")
    old, _ = starting(held)
    old.kill()

    # The connection waits for the new server.
    assert response(held.port) == "new"
    assert held.error("1") == ""
    assert held.files.description() == str(tmp_path / "new.description")


def test_the_holder_ends_with_its_only_server(held: HeldServer) -> None:
    held.servers()[0].kill()

    assert held.process.wait(TIMEOUT_S) == 1


def test_the_holder_ends_if_both_servers_do(held: HeldServer, tmp_path: Path) -> None:
    held.request(described(tmp_path, "new", NEVER_READY), "1", ready_timeout_s=2.0)
    starting(held)[0].kill()

    assert held.process.wait(TIMEOUT_S) == 1
    assert "not ready" in held.error("1")
    # With which it is started again.
    assert held.files.description() == str(tmp_path / "old.description")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_all_servers_end_with_the_holder(
    held: HeldServer, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    held.request(described(tmp_path, "new", NEVER_READY), "1")
    servers = starting(held)
    # It has handlers only once it ends with its parent.
    wait_until(lambda: has_handler(servers[-1]), "the new server ends with the holder", TIMEOUT_S)

    os.kill(held.process.pid, number)

    assert held.process.wait(TIMEOUT_S) == status
    assert psutil.wait_procs(servers, TIMEOUT_S)[1] == []


def test_the_same_request_again_starts_no_further_server(held: HeldServer, tmp_path: Path) -> None:
    description = described(tmp_path, "new")
    held.request(description, "1")
    servers = starting(held)
    held.request(description, "2")

    assert held.error("2") == ""
    assert held.servers() == servers[-1:]


def test_another_request_ends_a_server_that_is_not_ready(held: HeldServer, tmp_path: Path) -> None:
    held.request(described(tmp_path, "new", NEVER_READY), "1")
    first = starting(held)[-1]
    held.request(described(tmp_path, "newer"), "2")

    assert held.error("2") == ""
    assert not first.is_running()
    assert response(held.port) == "newer"


def test_a_request_for_what_runs_ends_a_server_that_is_not_ready(held: HeldServer, tmp_path: Path) -> None:
    held.request(described(tmp_path, "new", NEVER_READY), "1")
    starting(held)
    held.request(tmp_path / "old.description", "2")

    assert held.error("2") == ""
    assert_stays(held, tmp_path)


def test_a_request_does_not_outlive_the_holder(held: HeldServer, tmp_path: Path) -> None:
    held.process.kill()
    held.process.wait()
    held.request(described(tmp_path, "new"), "1")

    with held_server(tmp_path, tmp_path / "old.description") as again:
        assert "started again" in again.error("1")
        assert_stays(again, tmp_path)


def test_a_process_without_sockets_takes_over_when_the_present_one_has_ended(tmp_path: Path) -> None:
    order = tmp_path / "order"

    def waiting(name: str) -> Path:
        return described(tmp_path, name, program=("-c", WAITS), FILE=str(order))

    def is_up(_port: int) -> bool:
        return order.exists() and order.read_text() == "old\n"

    with held_server(tmp_path, waiting("old"), is_up, sockets=0) as held:
        held.request(waiting("new"), "1")

        assert held.error("1") == ""
        wait_until(lambda: order.read_text() == "old\nnew\n", "the new process has taken over", TIMEOUT_S)
        assert len(held.servers()) == 1
        assert held.files.description() == str(tmp_path / "new.description")


def test_a_process_without_sockets_may_go_on_when_the_new_one_fails(tmp_path: Path) -> None:
    stays = WAITS.replace("signal.pause()", "signal.sigwait({signal.SIGUSR1})").replace(
        "with open", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwith open"
    )
    order = tmp_path / "order"

    def waiting(name: str) -> Path:
        return described(tmp_path, name, program=("-c", stays), FILE=str(order))

    def is_up(_port: int) -> bool:
        return order.exists() and order.read_text() == "old\n"

    with held_server(tmp_path, waiting("old"), is_up, sockets=0) as held:
        present = held.servers()
        held.request(waiting("new"), "1")
        wait_until(lambda: held.files.description() == str(tmp_path / "new.description"), "it takes over")
        starting(held)[-1].kill()

        assert held.error("1") == "it ended with status -9"
        assert held.servers() == present
        assert held.files.description() == str(tmp_path / "old.description")
        os.kill(present[0].pid, signal.SIGKILL)


def test_each_worker_has_its_own_socket() -> None:
    sockets = socket_holder.bound_sockets("127.0.0.1", 0, 1)
    port = sockets[0].getsockname()[1]
    sockets += socket_holder.bound_sockets("127.0.0.1", port, WORKERS)

    assert {one.getsockname()[1] for one in sockets} == {port}
    for one in sockets:
        one.close()


def test_sigusr1_replaces_the_server_by_one_with_the_same_description(held: HeldServer) -> None:
    (before,) = held.servers()
    with held.connections():
        held.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: before not in held.servers(), "it is replaced", TIMEOUT_S)
        wait_until(lambda: len(held.servers()) == 1, "one server is left", TIMEOUT_S)

    assert set(held.responses) == {"old"}


def test_a_request_is_served_after_sigusr1(held: HeldServer, tmp_path: Path) -> None:
    held.request(described(tmp_path, "new"), "1")
    assert held.error("1") == ""
    (before,) = held.servers()

    held.process.send_signal(signal.SIGUSR1)
    wait_until(lambda: before not in held.servers(), "it is replaced", TIMEOUT_S)
    held.request(described(tmp_path, "newest"), "2")

    assert held.error("2") == ""
    assert response(held.port) == "newest"
