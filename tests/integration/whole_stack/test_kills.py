"""kill -9 of each server while events come in: afterwards every balance is exact again, on both nodes, without anyone's help."""

import json
import os
import signal
from decimal import Decimal

import psutil
import pytest
import requests

from include.settings import Settings
from stack.launchers import stream_driver
from stack.supervision.supervisor import Supervisor
from tests.support.stream_events import Ledger
from tests.support.stream_process import EventSource
from tests.support.waiting import wait_until

RECOVERY_TIMEOUT_S = 180
SERVERS = ("kafka", "registry", "node-1-materializer", "node-2-http", "airflow-scheduler")


@pytest.fixture(scope="module")
def source(full_stack: Settings) -> EventSource:
    wait_until(lambda: stream_driver.running(full_stack) is not None, "Airflow has launched the driver", 180)
    return EventSource(full_stack, "balance")


@pytest.fixture(scope="module")
def ledger(full_stack: Settings) -> Ledger:
    return Ledger(full_stack)


def pids(settings: Settings, server: str) -> list[int]:
    """Return the process ids of a server and its children, itself first."""
    pid = Supervisor(settings).states()[server].pid
    assert pid is not None, server
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


def kill(pid: int) -> None:
    """Kill with -9 a process that may have gone with its parent already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def answers_are_exact(settings: Settings, ledger: Ledger) -> bool:
    """Whether both nodes give every customer's balance as the ledger has it."""
    with requests.Session() as session:
        for port in settings.query_ports:
            url = f"http://127.0.0.1:{port}/api/customers.getBalance"
            for customer, amount in ledger.amounts.items():
                try:
                    response = session.get(url, params={"customerId": customer}, timeout=5)
                except requests.RequestException:
                    return False
                if response.status_code != requests.codes.ok:
                    return False
                if json.loads(response.text, parse_float=Decimal)["amount"] != amount:
                    return False
    return True


@pytest.mark.parametrize("server", [*SERVERS, "stream JVM"])
def test_balances_are_exact_after_a_kill(
    full_stack: Settings, source: EventSource, ledger: Ledger, server: str
) -> None:
    source.append(ledger.random_events(300))
    for event in ledger.random_events(300):
        source.append_raw(event.customerId.encode(), source.serializer.serialize(event))
    if server == "stream JVM":
        driver = stream_driver.running(full_stack)
        assert driver is not None
        driver.kill()
    else:
        for pid in pids(full_stack, server):
            kill(pid)
    source.flush()
    source.append(ledger.random_events(300))

    wait_until(lambda: answers_are_exact(full_stack, ledger), f"exact after {server}", RECOVERY_TIMEOUT_S)
