"""`./foldlake certificates` creates, renews and shows; names of nodes that are no file names, and hosts that are none, are refused."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.app import app
from cli.status import _certificate_warnings
from include.errors import SettingsError
from include.nodes.certificates import certificates_of
from include.settings import Settings
from tests.support.http.tls_server import NODE, expired, made


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without certificates, which the command uses."""
    monkeypatch.setenv("FOLDLAKE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def output(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["certificates", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_certificates_are_created_for_the_embedded_nodes_and_further_ones(home: Path) -> None:
    assert "There is no certificate." in output()

    created = output("create", "--node", "node-3=node-3.example", "--node", "node-4=fd00::1")

    names = {one.name: one.hosts for one in certificates_of(home)}
    assert names == {
        "ca": (),
        "jobs": (),
        "node-1": ("127.0.0.1",),
        "node-2": ("127.0.0.1",),
        "node-3": ("node-3.example",),
        "node-4": ("fd00::1",),
    }
    assert "node-3.example" in created
    assert "node-3.example" in output()
    assert "ca.pem" not in output("renew")
    assert "Nothing to create" in output("create", "--node", "node-3=node-3.example")


def test_a_node_may_have_the_hosts_of_a_whole_service(home: Path) -> None:
    output("create", "--node", "nodes=*.foldlake-nodes.shop.svc")

    assert {one.name: one.hosts for one in certificates_of(home)}["nodes"] == ("*.foldlake-nodes.shop.svc",)


@pytest.mark.parametrize(
    "node", ["node-3", "../x=a.example", "=a.example", "node-3=a b", "node-3=", "node-3=*.", "node-3=a.*.b"]
)
@pytest.mark.usefixtures("home")
def test_a_node_has_a_name_and_a_host(node: str) -> None:
    with pytest.raises(SettingsError, match="write the name of the node"):
        output("create", "--node", node)


def test_status_warns_of_a_certificate_that_has_ended(home: Path) -> None:
    expired(made(home), NODE)

    assert _certificate_warnings(Settings.of(home=home)) == []
    (warning,) = _certificate_warnings(Settings.of(home=home, auth="keys"))
    assert "node-1.pem has ended" in warning
    assert "has ended" in output()
