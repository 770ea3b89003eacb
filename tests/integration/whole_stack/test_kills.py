"""After a kill -9 of a server while events arrive, every balance is exact again on both nodes, without an operator.

`test_airflow_supervision.py` tests the same for Airflow's processes and the stream driver.
"""

import os
import signal

import psutil
import pytest

from include.settings import Settings
from stack.launchers import stream_driver
from stack.supervision.supervisor import Supervisor
from tests.support.stream_events import Ledger
from tests.support.stream_process import EventSource
from tests.support.waiting import wait_until

RECOVERY_TIMEOUT_S = 180
SERVERS = ("kafka", "registry", "node-1-materializer", "node-2-http")


@pytest.fixture(scope="module")
def source(full_stack: Settings) -> EventSource:
    wait_until(
        lambda: stream_driver.running(full_stack.home) is not None, "Airflow has launched the driver", 180
    )
    return EventSource(full_stack, "balance")


@pytest.fixture(scope="module")
def ledger(full_stack: Settings) -> Ledger:
    return Ledger(full_stack)


def pids(settings: Settings, server: str) -> list[int]:
    """Return the process ids of a server and its children, the server's first."""
    pid = Supervisor(settings).states()[server].pid
    assert pid is not None, server
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


def kill(pid: int) -> None:
    """Kill a process with -9; it may already have ended with its parent."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.mark.parametrize("server", SERVERS)
def test_balances_are_exact_after_a_kill(
    full_stack: Settings, source: EventSource, ledger: Ledger, server: str
) -> None:
    source.append(ledger.random_events(300))
    for event in ledger.random_events(300):
        source.append_raw(event.customerId.encode(), source.serializer.serialize(event))
    for pid in pids(full_stack, server):
        kill(pid)
    source.flush()
    source.append(ledger.random_events(300))

    wait_until(
        lambda: ledger.is_answered(full_stack),
        f"balances are exact after a kill of {server}",
        RECOVERY_TIMEOUT_S,
        poll_s=0.5,
    )
