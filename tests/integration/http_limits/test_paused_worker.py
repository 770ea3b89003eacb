"""A worker process of the HTTP server that hangs is replaced: no client waits for ever for it."""

import os
import signal
import socket
import time
from pathlib import Path

import httpx

from query_api.http.limits.worker_watchdog import CHECK_S, WORKER_HEADER
from tests.support.http.http_server import HttpServer, http_server
from tests.support.http.local_http import HTTP
from tests.support.waiting import wait_until

TIMEOUT_S = 3
# As many connections as it takes for the kernel to give some to each of two workers.
CONNECTIONS = 24
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_a_paused_worker_is_replaced_and_its_requests_end(tmp_path: Path) -> None:
    with http_server(tmp_path, node_http_worker_timeout_s=TIMEOUT_S) as server:
        wait_until(lambda: len(server.workers()) == 2, "both workers run")
        wait_until(lambda: len(_answering_workers(server)) == 2, "both workers answer")
        wait_until(lambda: _is_watching_both(server), "both workers are watched", poll_s=CHECK_S)
        paused = server.workers()[0]
        os.kill(paused.pid, signal.SIGSTOP)
        began = time.monotonic()
        waiting = [_ask(server.port) for _ in range(CONNECTIONS)]

        ended = [_is_answered(connection) for connection in waiting]
        ended_after_s = time.monotonic() - began
        wait_until(lambda: paused.pid not in {one.pid for one in server.workers()}, "it is replaced", 30)
        wait_until(lambda: len(server.workers()) == 2, "two workers run again", 30)
        wait_until(lambda: _are_all_answered(server.port), "all requests are answered", 30)

    assert True in ended, "the other worker answers"
    assert False in ended, "the paused worker got requests"
    assert ended_after_s < TIMEOUT_S + 20


def _answering_workers(server: HttpServer) -> set[str]:
    return {server.get("/healthz").headers[WORKER_HEADER] for _ in range(CONNECTIONS)}


def _is_watching_both(server: HttpServer) -> bool:
    """Whether the server has kept its connections to two workers for a check; while it searches for one, it opens others."""
    before = server.watched()
    time.sleep(CHECK_S)
    return len(before) == 2 and server.watched() == before


def _ask(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), 10)
    connection.sendall(REQUEST)
    return connection


def _is_answered(connection: socket.socket) -> bool:
    """Whether the request is answered, as soon as its connection has ended or was answered; raises TimeoutError."""
    with connection:
        connection.settimeout(20)
        try:
            return connection.recv(64).startswith(b"HTTP/1.1 200")
        except ConnectionResetError:
            return False


def _are_all_answered(port: int) -> bool:
    try:
        return all(
            HTTP.get(f"http://127.0.0.1:{port}/healthz", timeout=1).status_code == 200
            for _ in range(CONNECTIONS)
        )
    except httpx.HTTPError:
        return False
