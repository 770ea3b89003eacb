"""After a kill -9 of a server while events arrive, every balance is exact again on both nodes, without an operator.

While the stream driver is paused, the nodes say that their answers are old. `test_airflow_supervision.py` tests the same for Airflow's processes and the stream driver.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psutil
import pytest

from include.kafka.compacted_topics import FRESH_S
from include.nodes.peers import LAG_HEADER
from include.settings import Settings
from include.status.flow_status import FlowKind
from include.status.measurement import read_stream_status
from stack.launchers import stream_driver
from stack.supervision.supervisor import Supervisor
from tests.support.http.local_http import HTTP
from tests.support.stream_events import Ledger
from tests.support.stream_process import EventSource
from tests.support.waiting import wait_until

RECOVERY_TIMEOUT_S = 180
# In CI, a node's processes are killed in query_nodes/test_store_recovery.py and test_ownership.py.
SERVERS = (
    "kafka",
    *(
        pytest.param(name, marks=pytest.mark.endurance)
        for name in ("registry", "node-1-materializer", "node-2-http")
    ),
)


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


@contextmanager
def paused_driver(settings: Settings) -> Iterator[None]:
    """Pause the JVM and the Python process of the stream driver during a block."""
    driver = stream_driver.running(settings.home)
    assert driver is not None
    jvm, python = driver.process(), driver.python()
    assert jvm is not None
    assert python is not None
    for process in (jvm, python):
        process.suspend()
    try:
        yield
    finally:
        for process in (jvm, python):
            process.resume()


def get(port: int, path: str) -> httpx.Response:
    return HTTP.get(f"http://127.0.0.1:{port}{path}")


def readiness(settings: Settings) -> set[str]:
    return {get(port, "/readyz").json()["status"] for port in settings.query_ports}


def test_answers_say_that_they_are_old_while_the_driver_is_paused(
    full_stack: Settings, source: EventSource, ledger: Ledger
) -> None:
    wait_until(lambda: readiness(full_stack) == {"ready"}, "both nodes are ready", RECOVERY_TIMEOUT_S)
    with paused_driver(full_stack):
        events = ledger.random_events(84)
        source.append(events)

        def youngest_lag_ms() -> int:
            path = f"/api/customers.getBalance?customerId={events[0].customerId}"
            return min(int(get(port, path).headers[LAG_HEADER]) for port in full_stack.query_ports)

        wait_until(lambda: readiness(full_stack) == {"degraded"}, "both nodes are degraded", 60)
        # A node can be degraded for a moment for another reason, such as a rebalance after the kills of the tests before.
        wait_until(lambda: youngest_lag_ms() > FRESH_S * 1000 - 2000, "all answers say how old they are", 60)

        def still_s() -> float:
            (fold,) = (f for f in read_stream_status(full_stack).of_kind(FlowKind.FOLD) if f.stage == "live")
            return fold.still_s or 0

        # Nodes and the status measure at different moments, so the status can be some seconds behind the nodes.
        wait_until(lambda: still_s() > FRESH_S, "the status says that the fold stands still", 60)
    wait_until(lambda: ledger.is_answered(full_stack), "balances are exact", RECOVERY_TIMEOUT_S, poll_s=0.5)
    wait_until(lambda: readiness(full_stack) == {"ready"}, "both nodes are ready again", RECOVERY_TIMEOUT_S)
