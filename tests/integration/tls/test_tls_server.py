"""The HTTP server of a node with TLS, alone: for callers, and for other nodes."""

import os
import signal
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509

from include.nodes.certificates import renew
from include.nodes.peer_tls import JOBS, ClientTls, TlsFiles, certificate_path, key_path
from include.nodes.peers import HOP_ANY, Peer, PeerDownError
from query_api.http.limits.worker_watchdog import CHECK_S
from query_api.listener import Role
from tests.support.commands import ADD
from tests.support.http.http_server import HttpServer, http_server
from tests.support.http.raw_http import receive, request_head
from tests.support.http.tls_server import HOST, NODE, files_of, job_files, made
from tests.support.waiting import wait_until

TIMEOUT_S = 3
BODY_TIMEOUT_S = 2.0
STALLED = 200
REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with certificates."""
    return made(tmp_path)


@pytest.fixture
def callers(home: Path) -> Iterator[HttpServer]:
    """A server with TLS for callers."""
    files: dict[str, Any] = {
        "tls_cert_file": certificate_path(home, NODE),
        "tls_key_file": key_path(home, NODE),
    }
    with http_server(
        home, node_http_worker_timeout_s=TIMEOUT_S, node_http_body_timeout_s=BODY_TIMEOUT_S, **files
    ) as server:
        yield server


@pytest.fixture
def peers(home: Path) -> Iterator[HttpServer]:
    """A server for other nodes."""
    with http_server(home, Role.PEERS, auth="keys") as server:
        yield server


def status(server: HttpServer, tls: TlsFiles) -> int:
    with closing(Peer(f"https://{HOST}:{server.port}", tls=ClientTls(tls))) as peer:
        return peer.get("/healthz", HOP_ANY, 5.0).status


def test_callers_verify_the_certificate_and_get_an_answer(callers: HttpServer, home: Path) -> None:
    assert status(callers, TlsFiles(job_files(home).ca)) == 200
    context = ssl.create_default_context(cafile=str(job_files(home).ca))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    url = f"https://{HOST}:{callers.port}/healthz"
    assert httpx.get(url, verify=context, trust_env=False).status_code == 200


def test_plain_http_to_a_server_with_tls_gets_no_answer(callers: HttpServer) -> None:
    with socket.create_connection((HOST, callers.port), 10) as connection:
        connection.sendall(REQUEST)
        received = connection.recv(4096)

    assert not received.startswith(b"HTTP/")


def test_stalled_handshakes_hold_no_worker_and_are_ended(callers: HttpServer) -> None:
    stalled = [socket.create_connection((HOST, callers.port), 30) for _ in range(STALLED)]
    try:
        for connection in stalled[::2]:
            connection.sendall(b"\x16\x03\x01\x02")  # the beginning of a handshake

        assert [callers.get("/healthz").status_code for _ in range(20)] == [200] * 20
        assert {connection.recv(1) for connection in stalled} == {b""}
    finally:
        for connection in stalled:
            connection.close()


def test_a_body_that_is_not_complete_in_time_fails_with_408(callers: HttpServer, home: Path) -> None:
    headers = ("Host: localhost", "Content-Type: application/json", "Content-Length: 40")
    with (
        socket.create_connection((HOST, callers.port), 30) as plain,
        ClientTls(TlsFiles(job_files(home).ca)).context().wrap_socket(plain, server_hostname=HOST) as slow,
    ):
        slow.sendall(request_head("POST", ADD, *headers) + b'{"customerId"')
        answer = receive(slow)

    assert answer.status == 408


def test_a_paused_worker_with_tls_is_replaced(callers: HttpServer) -> None:
    wait_until_both_run(callers)
    paused = callers.workers()[0].pid

    os.kill(paused, signal.SIGSTOP)

    wait_until(lambda: paused not in {one.pid for one in callers.workers()}, "it is replaced", 30)
    wait_until(lambda: len(callers.workers()) == 2, "two workers run again", 30)
    wait_until(callers.is_answering, "the server answers", 30)


def wait_until_both_run(server: HttpServer) -> None:
    """Wait until both workers have read the certificate, and answer the watchdog."""
    wait_until(lambda: len(server.workers()) == 2, "both workers run")
    wait_until(lambda: _is_watching_both(server), "both workers are watched", poll_s=CHECK_S)


def _is_watching_both(server: HttpServer) -> bool:
    before = server.watched()
    time.sleep(CHECK_S)
    return len(before) == 2 and server.watched() == before


def serial(port: int) -> int:
    pem = ssl.get_server_certificate((HOST, port))
    return x509.load_pem_x509_certificate(pem.encode()).serial_number


def test_a_server_without_a_holder_takes_over_a_renewed_certificate(callers: HttpServer, home: Path) -> None:
    wait_until_both_run(callers)
    before = serial(callers.port)

    renew(home)

    wait_until(lambda: serial(callers.port) != before, "the new certificate is used", 30)
    assert callers.is_answering()


def test_a_certificate_without_its_key_is_not_taken_over(callers: HttpServer, home: Path) -> None:
    wait_until_both_run(callers)
    before, key = serial(callers.port), key_path(home, NODE)

    key.write_bytes(key_path(home, JOBS).read_bytes())

    wait_until(lambda: "changed certificates are not used yet" in callers.log(), "it is noticed", 30)
    assert serial(callers.port) == before


def test_nodes_and_jobs_reach_the_listener_for_peers(peers: HttpServer, home: Path) -> None:
    assert status(peers, files_of(home, NODE)) == 200
    assert status(peers, job_files(home)) == 200


def test_nobody_else_reaches_the_listener_for_peers(
    peers: HttpServer, home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ca, foreign = job_files(home).ca, job_files(made(tmp_path_factory.mktemp("foreign")))

    with pytest.raises(PeerDownError):
        status(peers, TlsFiles(ca))
    with pytest.raises(PeerDownError):
        status(peers, TlsFiles(ca, foreign.certificate, foreign.key))
    with socket.create_connection((HOST, peers.port), 10) as connection:
        connection.sendall(REQUEST)
        assert not connection.recv(4096).startswith(b"HTTP/")
    assert status(peers, job_files(home)) == 200
