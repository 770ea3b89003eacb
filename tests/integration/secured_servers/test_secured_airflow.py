"""Airflow's scheduler and the stream supervisor work with secured servers, and with nodes that demand keys.

The broker requires SASL_SSL and has access control lists, the registry is behind TLS and a password, and nodes are reached by mutual TLS.
"""

from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from include.airflow.client import AirflowApi, airflow_api
from include.airflow.names import COMPACTION_DAG, QUALITY_DAG
from include.airflow.web import read_model_labels
from include.settings import Settings
from stack.lifecycle import start
from tests.support.security.certificates import Authority
from tests.support.security.secured_broker import SecuredBroker
from tests.support.security.secured_home import KAFKA_SECRET, PRIVATE, REGISTRY_SECRET, secured_home
from tests.support.stream_events import BALANCE, Ledger
from tests.support.stream_process import EventSource
from tests.support.temporary_stack import first_of_free_ports
from tests.support.waiting import wait_until

# Airflow, the driver and a Spark job start, beside another worker's tests.
pytestmark = pytest.mark.timeout(1200)
TIMEOUT_S = 400.0
POLL_S = 1.0
ENDED = ("success", "failed")
EVENTS = 300


@pytest.fixture(scope="module")
def stack(
    servers: Settings, keep_home: Callable[[], bool], broker: SecuredBroker, authority: Authority
) -> Iterator[Settings]:
    values = {"auth": "keys", "node_peer_port": first_of_free_ports(2), "compaction_interval_s": 0}
    with secured_home(servers, broker, authority, keep_home, **values) as settings:
        start(settings)
        yield settings


def run(api: AirflowApi, dag: str, form: dict[str, Any]) -> str | None:
    """Run a DAG, and return the state in which it ends."""
    run_id = api.trigger(dag, form)
    wait_until(lambda: api.run_state(dag, run_id) in ENDED, f"{dag} ends", TIMEOUT_S, POLL_S)
    return api.run_state(dag, run_id)


def test_airflow_launches_the_driver_a_compaction_and_a_check(stack: Settings) -> None:
    ledger, api = Ledger(), airflow_api(stack.home, stack.airflow)
    EventSource(stack, BALANCE.source_topic).append(ledger.random_events(EVENTS))
    wait_until(lambda: ledger.is_folded(stack), "the supervisor's driver folds the events", TIMEOUT_S)
    ledger.assert_exact(stack)

    assert run(api, COMPACTION_DAG, {"read_model": "balance"}) == "success"
    form = {"read_model": "balance", "mode": "full", "stores": ["lake", "nodes"]}
    assert run(api, QUALITY_DAG, form) == "success"
    assert read_model_labels(stack, ["balance"]) == {"balance": "balance (v1 live)"}


def test_airflow_keeps_no_secret(stack: Settings) -> None:
    texts = [KAFKA_SECRET, REGISTRY_SECRET]
    files = [path for path in stack.home.rglob("*") if path.is_file() and not path.is_symlink()]
    found = {
        str(path.relative_to(stack.home))
        for path in files
        if any(text.encode() in path.read_bytes() for text in texts)
    }
    lines = [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]

    # The database and the logs of Airflow are among them.
    assert any(path.suffix == ".db" for path in files)
    assert any("task_id=" in str(path) for path in files)
    assert found <= PRIVATE
    assert {oct((stack.home / path).stat().st_mode & 0o777) for path in found} == {oct(0o600)}
    assert [line for line in lines if any(text in line for text in texts)] == []
