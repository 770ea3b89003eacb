"""A node whose settings cannot work does not start, and says why."""

from pathlib import Path

import pytest

from include.errors import SettingsError
from include.settings import Settings
from query_api import server
from query_api.materializer.node_materializer import Materializer
from stack.components import query_nodes


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("FOLDLAKE_HOME", str(tmp_path))
    monkeypatch.setenv("FOLDLAKE_NODE_BIND", "0.0.0.0")
    monkeypatch.setenv("FOLDLAKE_NODE_URL", "")
    monkeypatch.setenv("FOLDLAKE_KAFKA_BOOTSTRAP", "127.0.0.1:1")
    return Settings.of()


@pytest.mark.usefixtures("settings")
def test_the_server_of_a_node_on_every_address_without_a_url(caplog: pytest.LogCaptureFixture) -> None:
    assert server.main() == 1

    assert "FOLDLAKE_NODE_BIND is '0.0.0.0' and FOLDLAKE_NODE_URL is empty" in caplog.text


def test_the_materializer_of_a_node_on_every_address_without_a_url(settings: Settings) -> None:
    with pytest.raises(SettingsError, match=r"FOLDLAKE_NODE_BIND is '0\.0\.0\.0'"):
        Materializer(settings)


def test_the_embedded_nodes_on_every_address_without_a_url(settings: Settings) -> None:
    with pytest.raises(SettingsError, match=r"FOLDLAKE_NODE_BIND is '0\.0\.0\.0'"):
        query_nodes.check(settings)


def test_the_embedded_nodes_have_the_host_of_the_url_and_their_own_port(settings: Settings) -> None:
    nodes = query_nodes.node_settings(settings.changed(node_url="http://node.example:1"))

    assert [node.advertised_url for node in nodes] == [
        f"http://node.example:{port}" for port in settings.query_ports
    ]


@pytest.mark.usefixtures("settings")
def test_the_server_of_an_open_node_without_authentication(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("FOLDLAKE_NODE_URL", "http://node.example:5051")

    assert server.main() == 1

    error = caplog.text
    assert "FOLDLAKE_NODE_BIND is '0.0.0.0' and FOLDLAKE_AUTH is none" in error
    assert "FOLDLAKE_AUTH=keys" in error


def test_the_embedded_nodes_when_open_without_authentication(settings: Settings) -> None:
    with_url = settings.changed(node_url="http://node.example:1")

    with pytest.raises(SettingsError, match="FOLDLAKE_AUTH is none"):
        query_nodes.check(with_url)

    query_nodes.check(with_url.changed(auth="keys"))
    query_nodes.check(with_url.changed(allow_open=True))
