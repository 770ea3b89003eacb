"""Every kind of client works with a broker that requires SASL_SSL and has access control lists, and with a registry behind TLS and a password.

The tests run in this order, on one stack: the last ones search what the first ones have left for secrets.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from include.errors import KafkaUnavailableError, RegistryUnavailableError
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import admin_client, partition_count
from include.quality.check import CheckRequest, Mode, StoreName
from include.settings import CHECKOUT, CheckEngine, Settings, settings_environment
from stack.doctor.finding import State
from stack.doctor.prepared import check_servers
from stack.launchers import direct_submit
from stack.lifecycle import start
from tests.support.http.local_http import HTTP
from tests.support.security.certificates import Authority
from tests.support.security.secured_broker import SecuredBroker
from tests.support.security.secured_home import KAFKA_SECRET, PRIVATE, REGISTRY_SECRET, secured_home
from tests.support.stream_events import BALANCE, Ledger
from tests.support.stream_process import EventSource, make_topics
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

WATCHES = {"supervisord", "socket_holder.py"}
EVENTS = 300
JOB_TIMEOUT_S = 240


@dataclass
class SecuredStack:
    """Two nodes and a stream driver with these settings, and the broker."""

    settings: Settings
    broker: SecuredBroker
    ledger: Ledger


@pytest.fixture(scope="module")
def secured(
    servers: Settings, keep_home: Callable[[], bool], broker: SecuredBroker, authority: Authority
) -> Iterator[SecuredStack]:
    with secured_home(servers, broker, authority, keep_home) as settings:
        make_topics(settings, BALANCE.source_topic)
        start(settings, ("query_nodes",))
        with stream_driver(settings):
            yield SecuredStack(settings, broker, Ledger())


def test_events_are_folded_and_answered(secured: SecuredStack) -> None:
    settings, ledger = secured.settings, secured.ledger
    EventSource(settings, BALANCE.source_topic).append(ledger.random_events(EVENTS))
    wait_until(lambda: ledger.is_folded(settings), "the driver folds the events")
    ledger.assert_exact(settings)
    wait_until(lambda: ledger.is_answered(settings), "both nodes answer")

    (port, *_) = settings.query_ports
    command = {"customerId": "customer-0", "amount": "5.00"}
    accepted = HTTP.post(f"http://127.0.0.1:{port}/api/balance.addFunds", json=command)

    assert accepted.status_code == 202, accepted.text
    url = f"http://127.0.0.1:{port}/api/status?sections=services"
    (kafka, registry, _) = HTTP.get(url).json()["sections"]["services"]["data"]
    assert kafka["isUp"], kafka
    assert registry["isUp"], registry


def test_the_lake_is_compacted_and_checked_by_both_engines(secured: SecuredStack) -> None:
    assert direct_submit.run(secured.settings, "compaction", ("--read-model", "balance")) == 0

    for engine in (CheckEngine.DUCKDB, CheckEngine.SPARK):
        request = CheckRequest("balance", (StoreName.LAKE, StoreName.NODES), Mode.FULL, f"by-{engine}")
        assert direct_submit.run_check(secured.settings.changed(check_engine=engine), request) == 0, engine


def test_an_operator_s_commands_reach_both_servers(secured: SecuredStack) -> None:
    found = {one.check: one for one in check_servers(secured.settings)}
    assert {one.state for one in found.values()} == {State.OK}, found

    shown = _command(secured.settings, "status")
    assert "balance" in shown.stdout, shown.stderr
    for unavailable in ("does not answer", "does not respond"):
        assert unavailable not in shown.stdout + shown.stderr
    listed = _command(secured.settings, "versions")
    assert listed.returncode == 0, listed.stderr
    assert "balance" in listed.stdout


def test_no_file_no_log_and_no_argument_contains_a_secret(secured: SecuredStack) -> None:
    home = secured.settings.home
    texts = [KAFKA_SECRET.encode(), REGISTRY_SECRET.encode()]
    files = [path for path in home.rglob("*") if path.is_file() and not path.is_symlink()]
    found = {
        str(path.relative_to(home)) for path in files if any(text in path.read_bytes() for text in texts)
    }
    processes = [one for one in psutil.process_iter(["cmdline", "environ"]) if one.info["cmdline"]]
    arguments = {
        one.pid for one in processes if any(t.decode() in " ".join(one.info["cmdline"]) for t in texts)
    }
    # Those that only start and watch the others.
    watching = [
        one for one in processes if str(home) in str(one.info["cmdline"]) and WATCHES & set(_programs(one))
    ]
    informed = {one.pid for one in watching if any(t.decode() in str(one.info["environ"]) for t in texts)}

    assert len(files) > 50
    assert any(path.suffix == ".log" for path in files)
    assert found <= PRIVATE
    assert {oct((home / path).stat().st_mode & 0o777) for path in found} == {oct(0o600)}
    assert "run/kafka.properties" in found, "Spark has read the password from this file"
    assert arguments == set()
    assert watching
    assert informed == set()


def test_a_wrong_password_is_named_with_its_setting(
    secured: SecuredStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Afterwards, as before: errors of later tests in this process would name the refusal as well.
    monkeypatch.setattr("include.errors._NewestRefusal.text", "")
    settings = secured.settings.changed(kafka_sasl_password="wrong", schema_registry_password="wrong")  # noqa: S106

    with pytest.raises(
        KafkaUnavailableError, match=r"refuse this client: .* check .*FOLDLAKE_KAFKA_SASL_PASSWORD"
    ):
        partition_count(admin_client(settings.kafka_connection, log_level=0), BALANCE.source_topic)
    with pytest.raises(
        RegistryUnavailableError, match=r"refuses this caller .* FOLDLAKE_SCHEMA_REGISTRY_PASSWORD"
    ):
        SchemaRegistry(settings.registry.connection).schema_ids(BALANCE.source_topic)


def test_a_missing_right_is_an_error_that_says_where_the_rights_are_listed(secured: SecuredStack) -> None:
    secured.broker.add_user("nobody", "unknown")
    settings = secured.settings.changed(kafka_sasl_username="nobody", kafka_sasl_password="unknown")  # noqa: S106

    with pytest.raises(
        KafkaUnavailableError, match=r"authorization failed.*grant .* docs/how-to/own-servers\.md"
    ):
        partition_count(admin_client(settings.kafka_connection), BALANCE.source_topic)


def _programs(process: psutil.Process) -> Iterator[str]:
    """Yield the names of the files in a process's command line."""
    return (Path(part).name for part in process.info["cmdline"])


def _command(settings: Settings, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "cli", *words],
        env={**os.environ, **settings_environment(settings), "PYTHONPATH": str(CHECKOUT), "COLUMNS": "120"},
        cwd=Path(CHECKOUT),
        capture_output=True,
        text=True,
        timeout=JOB_TIMEOUT_S,
        check=False,
    )
