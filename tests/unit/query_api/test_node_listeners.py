"""With authentication, each node has a server for other nodes and jobs, and the certificates that it needs."""

from pathlib import Path

import pytest

from include.errors import SettingsError
from include.nodes.certificates import certificates_of
from include.settings import Settings
from stack.components import query_nodes
from tests.support.http.tls_server import made


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of two nodes on loopback without authentication."""
    return Settings.of(home=tmp_path, query_ports=(6001, 6002), node_peer_port=6101)


def test_without_authentication_there_is_no_other_listener_and_no_certificate(settings: Settings) -> None:
    query_nodes.prepare(settings)

    names = {process.name for process in query_nodes.processes(settings)}
    assert names == {"node-1-http", "node-1-materializer", "node-2-http", "node-2-materializer"}
    assert certificates_of(settings.home) == []


def test_with_authentication_each_node_has_a_listener_for_peers(settings: Settings) -> None:
    secured = settings.changed(auth="keys")
    query_nodes.prepare(secured)

    processes = {process.name: process for process in query_nodes.processes(secured)}
    peers = processes["node-2-peers"]
    assert (peers.port, peers.port_setting) == (6102, "FOLDLAKE_NODE_PEER_PORT")
    assert peers.environment["FOLDLAKE_STACK_LISTENER"] == "peers"
    assert "FOLDLAKE_STACK_LISTENER" not in processes["node-2-http"].environment
    names = ("FOLDLAKE_NODE_TLS_CA_FILE", "FOLDLAKE_NODE_TLS_CERT_FILE", "FOLDLAKE_NODE_TLS_KEY_FILE")
    for process in processes.values():
        assert all(Path(process.environment[name]).exists() for name in names)
    assert processes["node-2-materializer"].environment[names[1]].endswith("/tls/node-2.pem")
    assert {one.name for one in certificates_of(settings.home)} == {"ca", "jobs", "node-1", "node-2"}


def test_files_of_the_settings_are_used_and_none_are_created(settings: Settings, tmp_path: Path) -> None:
    folder = made(tmp_path / "company") / "tls"
    files = {
        "node_tls_ca_file": folder / "ca.pem",
        "node_tls_cert_file": folder / "node-1.pem",
        "node_tls_key_file": folder / "node-1-key.pem",
    }
    secured = settings.changed(auth="keys", **files)
    query_nodes.check(secured)
    query_nodes.prepare(secured)

    first, *_ = query_nodes.processes(secured)
    assert first.environment["FOLDLAKE_NODE_TLS_CERT_FILE"] == str(folder / "node-1.pem")
    assert certificates_of(settings.home) == []
    with pytest.raises(SettingsError, match="cannot use"):
        query_nodes.check(secured.changed(node_tls_key_file=folder / "jobs-key.pem"))


def test_a_node_alone_elsewhere_than_on_loopback_makes_no_ca_of_its_own(settings: Settings) -> None:
    alone = settings.changed(
        auth="keys",
        query_ports=(5051,),
        node_port=5051,
        node_bind="0.0.0.0",
        node_url="http://node-1.example:5051",
    )

    with pytest.raises(SettingsError, match="needs a certificate of the CA of all nodes"):
        query_nodes.prepare(alone)

    made(settings.home, {"node-1": "node-1.example"})
    query_nodes.prepare(alone)


def test_a_certificate_for_callers_that_is_not_usable_stops_the_start(settings: Settings) -> None:
    missing = settings.home / "missing.pem"

    with pytest.raises(SettingsError, match="cannot use the certificate"):
        query_nodes.check(settings.changed(tls_cert_file=missing, tls_key_file=missing))
