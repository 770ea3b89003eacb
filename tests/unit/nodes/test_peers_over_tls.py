"""Requests to nodes by mutual TLS: who is refused by whom, and certificates that are renewed while requests go on."""

import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from include.errors import SettingsError
from include.nodes.certificates import renew
from include.nodes.peer_tls import ClientTls, TlsFiles, certificate_path, key_path, node_tls_files
from include.nodes.peers import HOP_ANY, Peer, PeerDownError
from include.settings import Settings
from tests.support.http.played_server import Reply, played_server
from tests.support.http.tls_server import (
    NODE,
    TlsServer,
    expired,
    files_of,
    job_files,
    made,
    tls_server,
)

PATH, TEXT = "/readyz", "ready"
Clients = Callable[[str, TlsFiles], Peer]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a CA, and certificates of a node and of jobs."""
    return made(tmp_path / "home")


@pytest.fixture
def server(home: Path) -> Iterator[TlsServer]:
    """A node that requires a certificate."""
    with tls_server(home) as found:
        found.otherwise = Reply(200, TEXT)
        yield found


@pytest.fixture
def peers() -> Iterator[Clients]:
    """Creates clients, which are closed at the end."""
    with ExitStack() as used:
        yield lambda url, files: used.enter_context(closing(Peer(url, tls=ClientTls(files))))


def ask(peer: Peer) -> str:
    return peer.get(PATH, HOP_ANY, 5.0).body.decode()


def test_requests_of_a_job_share_a_connection(server: TlsServer, home: Path, peers: Clients) -> None:
    peer = peers(server.url, job_files(home))

    assert [ask(peer) for _ in range(3)] == [TEXT] * 3

    assert len(server.clients) == 1
    assert "Foldlake jobs" in server.clients[0]


def test_a_client_without_a_certificate_is_refused(server: TlsServer, home: Path) -> None:
    with pytest.raises(PeerDownError):
        ask(Peer(server.url, tls=ClientTls(TlsFiles(job_files(home).ca))))

    assert server.requests == []


def test_a_client_with_a_certificate_of_another_ca_is_refused(
    server: TlsServer, home: Path, tmp_path: Path
) -> None:
    foreign = job_files(made(tmp_path / "foreign"))

    with pytest.raises(PeerDownError):
        ask(Peer(server.url, tls=ClientTls(TlsFiles(job_files(home).ca, foreign.certificate, foreign.key))))

    assert server.requests == []


def test_a_client_whose_certificate_has_ended_is_refused(server: TlsServer, home: Path) -> None:
    expired(home, "jobs")

    with pytest.raises(PeerDownError):
        ask(Peer(server.url, tls=ClientTls(job_files(home))))

    assert server.requests == []


def test_a_server_of_another_ca_gets_no_request(server: TlsServer, tmp_path: Path) -> None:
    foreign = job_files(made(tmp_path / "foreign"))

    with pytest.raises(PeerDownError, match="certificate verify failed"):
        ask(Peer(server.url, tls=ClientTls(foreign)))

    assert server.requests == []


def test_a_server_whose_certificate_has_ended_gets_no_request(server: TlsServer, home: Path) -> None:
    expired(home, NODE)

    with pytest.raises(PeerDownError, match="certificate has expired"):
        ask(Peer(server.url, tls=ClientTls(job_files(home))))


def test_a_server_with_the_certificate_of_another_host_gets_no_request(home: Path) -> None:
    made(home, {"node-2": "node-2.example"})

    with (
        tls_server(home, "node-2") as server,
        pytest.raises(PeerDownError, match="IP address mismatch"),
    ):
        ask(Peer(server.url, tls=ClientTls(job_files(home))))


def test_a_certificate_of_jobs_is_none_of_a_server(home: Path) -> None:
    with tls_server(home, "jobs") as server, pytest.raises(PeerDownError, match="verify failed"):
        ask(Peer(server.url, tls=ClientTls(job_files(home))))


def test_plain_http_to_a_port_with_tls_and_the_other_way_round_fail(server: TlsServer, home: Path) -> None:
    with pytest.raises(PeerDownError):
        ask(Peer(server.url.replace("https", "http")))
    with played_server() as plain, pytest.raises(PeerDownError):
        ask(Peer(plain.url.replace("http", "https"), tls=ClientTls(job_files(home))))

    assert server.requests == []


def test_a_handshake_that_stalls_ends_with_the_timeout_of_the_request(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}"

        with pytest.raises(PeerDownError, match="timed out"):
            Peer(url, tls=ClientTls(job_files(home))).get(PATH, HOP_ANY, 0.2)


def test_renewed_certificates_are_used_for_new_connections(server: TlsServer, home: Path) -> None:
    tls = ClientTls(job_files(home))
    before = tls.context()
    assert tls.context() is before
    with closing(Peer(server.url, tls=tls)) as peer:
        ask(peer)

        renew(home)
        peer.close()

        assert ask(peer) == TEXT
    assert tls.context() is not before


def test_until_both_files_are_renewed_the_former_certificate_is_used(server: TlsServer, home: Path) -> None:
    tls, own = ClientTls(job_files(home)), job_files(home)
    before = tls.context()

    shutil.copy(str(files_of(home, NODE).key), str(own.key))

    assert tls.context() is before
    with closing(Peer(server.url, tls=tls)) as peer:
        assert ask(peer) == TEXT


def test_the_files_are_those_of_the_settings_or_of_the_home(home: Path) -> None:
    secured = Settings.of(home=home, auth="keys")
    named = {"node_tls_ca_file": "/a/ca", "node_tls_cert_file": "/a/cert"}

    assert node_tls_files(Settings.of(home=home)) == TlsFiles()
    assert node_tls_files(secured).certificate == certificate_path(home, "jobs")
    assert node_tls_files(secured, NODE).key == key_path(home, NODE)
    assert node_tls_files(Settings.of(auth="keys", node_tls_key_file="/a/key", **named)) == TlsFiles(
        Path("/a/ca"), Path("/a/cert"), Path("/a/key")
    )
    with pytest.raises(SettingsError, match="set FOLDLAKE_NODE_TLS_KEY_FILE too"):
        node_tls_files(Settings.of(auth="keys", **named))
