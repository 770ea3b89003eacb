"""Clients that send slowly, or not at all, or do not read, take nothing from the others."""

import json
import resource
import select
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.commands import ADD
from tests.support.http.http_server import HttpServer, http_server
from tests.support.http.raw_http import RawResponse, connections, receive, request_head

BODY_TIMEOUT_S = 2.0
IDLE_TIMEOUT_S = 4.0
EARLY_S = 1.5
# On a busy machine.
LATE_S = 15.0
COMMANDS = 4
OTHER_CLIENT = "127.0.0.2"
MANY_FILES = 4000
HALF_A_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    home = tmp_path_factory.mktemp("node")
    with http_server(
        home,
        node_http_workers=1,
        node_http_body_timeout_s=BODY_TIMEOUT_S,
        node_http_idle_timeout_s=IDLE_TIMEOUT_S,
        node_http_commands=COMMANDS,
    ) as running:
        yield running


def command(length: int) -> bytes:
    """Return the headers of a command with a body of this length."""
    return request_head(
        "POST", ADD, "Host: localhost", "Content-Type: application/json", f"Content-Length: {length}"
    )


def slug(answer: RawResponse) -> str:
    """Return the kind of problem that an answer reports."""
    return str(json.loads(answer.body)["type"]).removeprefix("urn:foldlake:problem:")


def response(connection: socket.socket) -> bytes:
    """Return what the server sends until it closes the connection."""
    received = b""
    while more := connection.recv(4096):
        received += more
    return received


def send_until_disconnected(connection: socket.socket, part: bytes, pause_s: float = 0.0) -> None:
    """Send the same bytes again and again; raises ConnectionError once the server has closed the connection, and else TimeoutError."""
    deadline = time.monotonic() + IDLE_TIMEOUT_S * 3
    while time.monotonic() < deadline:
        connection.sendall(part)
        time.sleep(pause_s)
    raise TimeoutError


@contextmanager
def many_open_files() -> Iterator[None]:
    """Raise this process's limit of open files for the block, or skip the test."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < MANY_FILES:
        pytest.skip(f"the system permits {hard} open files, and the test opens {MANY_FILES}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, MANY_FILES), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_node_answers_beside_many_idle_connections_and_half_open_requests(tmp_path: Path) -> None:
    with (
        http_server(tmp_path) as server,
        many_open_files(),
        connections(server.port, 600, HALF_A_REQUEST),
        connections(server.port, 2000),
    ):
        for _ in range(20):
            assert server.get("/healthz", timeout_s=2).status_code == 200


@pytest.mark.parametrize("sent", [b"", b"G", HALF_A_REQUEST], ids=["nothing", "one byte", "half"])
def test_a_connection_without_a_complete_request_is_closed(server: HttpServer, sent: bytes) -> None:
    with connections(server.port, 1, sent) as (connection,):
        began = time.monotonic()
        assert response(connection) == b""

    assert IDLE_TIMEOUT_S - EARLY_S < time.monotonic() - began < IDLE_TIMEOUT_S + LATE_S


def test_headers_that_come_byte_by_byte_do_not_extend_the_deadline(server: HttpServer) -> None:
    began = time.monotonic()
    with connections(server.port, 1, HALF_A_REQUEST) as (connection,), pytest.raises(ConnectionError):
        send_until_disconnected(connection, b"x", pause_s=0.2)

    assert IDLE_TIMEOUT_S - EARLY_S < time.monotonic() - began < IDLE_TIMEOUT_S + LATE_S


@pytest.mark.parametrize("is_trickling", [False, True], ids=["no more bytes", "byte by byte"])
def test_a_command_whose_body_is_not_complete_in_time_fails_with_408(
    server: HttpServer, *, is_trickling: bool
) -> None:
    began = time.monotonic()
    with connections(server.port, 1, command(1000) + b"{") as (connection,):
        while is_trickling and not select.select([connection], [], [], 0.2)[0]:
            connection.sendall(b" ")
        answer = receive(connection)

    assert (answer.status, slug(answer)) == (408, "body-timeout")
    assert b"Nothing was written." in answer.body
    assert BODY_TIMEOUT_S - EARLY_S < time.monotonic() - began < BODY_TIMEOUT_S + LATE_S


def test_requests_of_the_same_client_are_answered_beside_an_unfinished_body(server: HttpServer) -> None:
    """The connection of a slow body is found by its client's address, which others have too."""
    request = request_head("GET", "/healthz", "Host: localhost")
    with (
        connections(server.port, 1, command(1000)) as (slow,),
        connections(server.port, 3, request) as kept_alive,
    ):
        while not select.select([slow], [], [], 0.3)[0]:
            for connection in kept_alive:
                assert receive(connection).status == 200
                connection.sendall(request)
        assert receive(slow).status == 408
        assert [receive(connection).status for connection in kept_alive] == [200, 200, 200]


def test_unfinished_commands_of_one_client_leave_room_for_those_of_others(server: HttpServer) -> None:
    body = b'{"customerId": "1", "amount": "5.00"}'
    whole = command(len(body)) + body
    share = COMMANDS * 3 // 4
    with connections(server.port, share + 1, command(1000)) as unfinished:
        refused = [one for one in unfinished if select.select([one], [], [], 0.5)[0]]
        assert [(receive(one).status) for one in refused] == [429]
        with (
            connections(server.port, 1, whole) as (same,),
            connections(server.port, 1, whole, OTHER_CLIENT) as (other,),
        ):
            answers = receive(same), receive(other)
        assert server.get("/healthz", timeout_s=2).status_code == 200
        assert {receive(one).status for one in unfinished if one not in refused} == {408}

    # Kafka is down, so the command of the other client is not refused before it comes to that.
    assert [slug(answer) for answer in answers] == ["too-many-commands", "log-unavailable"]
    assert answers[0].headers["retry-after"] == "2"
    assert b"Nothing was written." in answers[0].body


def test_a_client_that_reads_nothing_is_disconnected(server: HttpServer) -> None:
    requests = request_head("GET", "/", "Host: localhost") * 4000
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        connection.settimeout(IDLE_TIMEOUT_S + LATE_S)
        began = time.monotonic()
        with pytest.raises(ConnectionError):
            send_until_disconnected(connection, requests)

    assert time.monotonic() - began < IDLE_TIMEOUT_S + LATE_S
