"""A command whose servers are not up ends at once, and says which one and what to do."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from typer.testing import CliRunner

from cli.app import NEEDED, app
from cli.servers import AIRFLOW, KAFKA, REGISTRY, NotUpError, require_up
from include.lake.tables import table_path
from include.settings import Settings
from tests.support.temporary_stack import free_ports

ARGUMENTS = {
    "versions": (),
    "dead-letters": (),
    "retire": ("balance", "1"),
    # These check their own arguments first.
    "reset": ("balance", "--to", "earliest"),
    "rebuild": ("balance", "--reason", "a test"),
    "rollback": ("balance", "--reason", "a test"),
    "load": (),
    "explain": ("balance", "1"),
    "compact": (),
    "quality": (),
    "quality --now": ("--now", "--version", "99"),
}


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


# Far below the timeouts of Kafka's client. The imports of a command take a second on a busy machine.
AT_ONCE_S = 5.0


@pytest.mark.parametrize("command", [*NEEDED, "reset", "rebuild", "quality", "quality --now"])
def test_a_command_without_its_stack_says_how_to_start_it(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (port,) = free_ports(1)
    monkeypatch.setenv("FOLDLAKE_KAFKA_PORT", str(port))
    began_s = time.monotonic()

    result = CliRunner().invoke(app, [command.split(maxsplit=1)[0], *ARGUMENTS[command]])

    assert isinstance(result.exception, NotUpError), result.output
    assert f"Kafka does not respond at 127.0.0.1:{port}" in str(result.exception)
    assert "`./foldlake up` starts it" in str(result.exception)
    assert time.monotonic() - began_s < AT_ONCE_S


def test_the_lake_is_shown_without_its_stack(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    monkeypatch.setenv("FOLDLAKE_KAFKA_PORT", str(port))
    monkeypatch.setenv("FOLDLAKE_HOME", str(tmp_path))
    columns = pa.table({"customer_id": ["1"]})
    write_deltalake(table_path(str(tmp_path / "lake"), "balance"), columns)
    began_s = time.monotonic()

    result = CliRunner().invoke(app, ["lake"])

    assert result.exit_code == 0, result.output
    assert "events behind   unknown: Kafka does not respond" in result.output
    assert "`./foldlake up` starts the stack" in " ".join(result.output.split())
    assert time.monotonic() - began_s < AT_ONCE_S


def test_one_of_several_brokers_is_enough(listening: int) -> None:
    (port,) = free_ports(1)
    settings = Settings.of(kafka_bootstrap=f"127.0.0.1:{port},127.0.0.1:{listening}")

    require_up(settings, (KAFKA,))


@pytest.mark.parametrize(
    ("name", "variable", "path"), [(REGISTRY, "schema_registry_url", "/apis"), (AIRFLOW, "airflow_url", "")]
)
def test_servers_are_found_by_their_urls(name: str, variable: str, path: str, listening: int) -> None:
    (port,) = free_ports(1)
    require_up(Settings.of(**{variable: f"http://127.0.0.1:{listening}{path}"}), (name,))

    with pytest.raises(NotUpError, match=f"{name} does not respond at 127.0.0.1:{port}"):
        require_up(Settings.of(**{variable: f"http://127.0.0.1:{port}{path}"}), (name,))


def test_a_server_of_another_machine_is_not_started_here() -> None:
    with pytest.raises(NotUpError, match="Check that it runs, and its address in the settings"):
        require_up(Settings.of(kafka_bootstrap="broker.example:9092"), (KAFKA,))
