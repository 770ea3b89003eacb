"""Attacks on nodes with authentication, without a key or with a stolen one: what they cost, and where secrets are afterwards."""

import json
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from socket import create_server
from threading import Event, Thread

import psutil
import pytest

from include.nodes.peer_tls import JOBS, certificate_path, key_path
from include.settings import NodeSettings
from query_api.access.key_file import FILE_NAME
from query_api.cluster.membership import Membership
from tests.integration.security.conftest import BALANCE, LOOKUP, SecuredNodes
from tests.integration.security.test_callers import ADD, SECOND_S, SLACK_S
from tests.support.http.raw_http import connections, exchange, request_head
from tests.support.http.tls_server import HOST, NODE, made
from tests.support.waiting import wait_until

GIGABYTES = 10 * 2**30
FORM = "Content-Type: application/x-www-form-urlencoded"
# Less than a node waits for the rest of a request.
AT_ONCE_S = 4.0
CLIENTS = 200


@pytest.mark.parametrize("path", [ADD, LOOKUP, "/api/status", "/unknown"])
@pytest.mark.parametrize(
    "body", [f"Content-Length: {GIGABYTES}", "Transfer-Encoding: chunked", "Content-Length: 30"]
)
def test_a_request_without_a_key_is_refused_before_its_body_arrives(
    secured: SecuredNodes, path: str, body: str
) -> None:
    began_s = time.monotonic()

    for expectation in ((), ("Expect: 100-continue",)):
        head = request_head(
            "POST", path, "Host: localhost", "Content-Type: application/json", body, *expectation
        )
        assert exchange(secured.ports[0], head).status == 401

    assert time.monotonic() - began_s < AT_ONCE_S


def test_a_sign_in_form_is_small(secured: SecuredNodes) -> None:
    host = f"127.0.0.1:{secured.ports[0]}"
    head = (f"Host: {host}", f"Origin: http://{host}", FORM, f"Content-Length: {GIGABYTES}")

    assert exchange(secured.ports[0], request_head("POST", "/sign-in", *head)).status == 415


def test_unfinished_requests_without_a_key_leave_room_for_those_with_one(secured: SecuredNodes) -> None:
    secret, port = secured.key("beside"), secured.ports[0]
    host = f"127.0.0.1:{port}"
    form = request_head(
        "POST", "/sign-in", f"Host: {host}", f"Origin: http://{host}", FORM, "Content-Length: 99"
    )

    with connections(port, CLIENTS, b"GET / HTTP/1.1\r\nHost: local"), connections(port, CLIENTS // 4, form):
        began_s = time.monotonic()
        for _ in range(20):
            assert secured.get(port, LOOKUP, secret).text == BALANCE
        assert secured.get(port, "/healthz").status_code == 200
        # One of them at a time is answered with 503 at once, without a wait for its form.
        assert time.monotonic() - began_s < AT_ONCE_S + SLACK_S


def cookie(secured: SecuredNodes, secret: str) -> str:
    """Sign in, and return the cookie as a browser sends it."""
    port = secured.ports[0]
    host, form = f"127.0.0.1:{port}", f"credential={secret}".encode()
    head = (f"Host: {host}", f"Origin: http://{host}", FORM, f"Content-Length: {len(form)}")
    answer = exchange(port, request_head("POST", "/sign-in", *head) + form)
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=Strict" in answer.headers["set-cookie"]
    return answer.headers["set-cookie"].partition(";")[0]


def test_a_stolen_cookie_ends_with_its_key(secured: SecuredNodes) -> None:
    stolen = cookie(secured, secured.key("stolen"))
    port = secured.ports[0]
    assert secured.get(port, LOOKUP, Cookie=stolen).text == BALANCE

    secured.keys.revoke("stolen", datetime.now(UTC))
    revoked_s = time.monotonic()
    wait_until(
        lambda: secured.get(port, LOOKUP, Cookie=stolen).status_code == 401, "the cookie is refused", 30, 0.01
    )

    assert time.monotonic() - revoked_s < SECOND_S + SLACK_S


class Trap:
    """A server with a certificate of another CA: it asks its clients for none, and notes what they send after the handshake."""

    def __init__(self, home: Path) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate_path(home, NODE), key_path(home, NODE))
        self._socket = create_server((HOST, 0))
        self._socket.settimeout(0.2)
        self.url = f"https://{HOST}:{self._socket.getsockname()[1]}"
        self.connections = 0
        self.received = b""
        self._is_over = Event()

    def _run(self) -> None:
        while not self._is_over.is_set():
            try:
                plain, _ = self._socket.accept()
            except TimeoutError:
                continue
            self.connections += 1
            plain.settimeout(2.0)
            try:
                with closing(self._context.wrap_socket(plain, server_side=True)) as connection:
                    self.received += connection.recv(4096)
            except OSError:
                plain.close()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Accept connections during a block."""
        thread = Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()
            self._socket.close()


@contextmanager
def repeating(call: Callable[[], None]) -> Iterator[None]:
    """Call a function again and again during a block."""
    is_over = Event()

    def run() -> None:
        while not is_over.is_set():
            call()

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_a_forged_member_of_the_group_gets_no_request_of_a_node(
    secured: SecuredNodes, tmp_path: Path
) -> None:
    secret, trap = secured.key("watching"), Trap(made(tmp_path))
    forged = Membership(
        secured.settings.kafka_connection, NodeSettings(name="forged"), trap.url, lambda: None
    )
    forged.subscribe(["balance"])

    def nodes() -> list[dict[str, str]]:
        page = secured.get(secured.ports[0], "/api/status?sections=nodes", secret)
        found: list[dict[str, str]] = page.json()["sections"]["nodes"]["data"]
        return found

    try:
        with trap.running(), repeating(forged.run_once):
            wait_until(lambda: any(one["url"] == trap.url for one in nodes()), "the node sees the member", 60)
            wait_until(lambda: trap.connections > 0, "the node connects to it", 30)
            (shown,) = (one for one in nodes() if one["url"] == trap.url)
            assert secured.get(secured.ports[0], LOOKUP, secret).text == BALANCE
    finally:
        forged.close()

    assert shown["state"] == "no answer"
    assert trap.received == b"", "the node verifies the certificate before it sends anything"


def test_no_file_argument_or_environment_has_a_secret(secured: SecuredNodes) -> None:
    secret, port = secured.key("searched", "read,write"), secured.ports[0]
    secured.statuses(secret)
    secured.statuses(secret + "x")
    secured.get(port, f"{LOOKUP}&key={secret}")
    secured.get(port, f"/{secret}", secret)
    secured.get(port, LOOKUP, Cookie=cookie(secured, secret))
    token = secured.issuer.token()
    assert secured.statuses(token) <= {200, 401}
    home = secured.settings.home
    keys = [path.read_text().splitlines()[1] for path in (home / "tls").glob("*-key.pem")]
    assert len(keys) >= 3
    texts = [secret.split("_", 2)[2], token.rpartition(".")[2]]

    files = [path for path in home.rglob("*") if path.is_file()]
    assert any(path.name == FILE_NAME for path in files)
    assert {path.name for path in files if path.suffix == ".log"}
    assert [path for path in files if any(text.encode() in path.read_bytes() for text in texts)] == []
    # The keys of certificates are in their own files only, which only their owner can read.
    found = [path for path in files if any(key.encode() in path.read_bytes() for key in keys)]
    assert {path.parent.name for path in found} == {"tls"}
    assert {oct(path.stat().st_mode & 0o777) for path in found} == {"0o600"}
    assert key_path(home, JOBS) in found
    for process in psutil.process_iter(["cmdline", "environ"]):
        shown = json.dumps([process.info["cmdline"], process.info["environ"]])
        assert not any(text in shown for text in (*texts, *keys)), process
