"""After kills of driver, broker, nodes and Airflow while invoices are sent, every branch is as the oracle has it, each record once."""

import itertools
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from demo.log_tables import record_count
from demo.pos.branches import BRANCHES, TILLS, TREND
from include.settings import Settings
from stack.launchers import stream_driver
from stack.supervision.supervisor import Supervisor
from tests.integration.pos_stack.tills import Tills
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.endurance, pytest.mark.timeout(3600)]

MANY_KILLS = int(os.environ.get("FOLDLAKE_TEST_KILLS", "20"))
INVOICES_PER_KILL = 400
VICTIMS = (
    "driver",
    "kafka",
    "node-1-materializer",
    "airflow-scheduler",
    "driver",
    "node-2-http",
    "airflow-triggerer",
    "airflow-api-server",
)
TIMEOUT_S = 300


def kill(settings: Settings, victim: str) -> None:
    """Kill the driver, or a server and its children, with -9."""
    wait_until(running(settings, victim), f"{victim} runs", TIMEOUT_S)
    if victim == "driver":
        driver = stream_driver.running(settings.home)
        assert driver is not None
        driver.kill()
        return
    root = psutil.Process(Supervisor(settings).states()[victim].pid)
    for process in (root, *root.children(recursive=True)):
        if process.is_running():
            process.send_signal(signal.SIGKILL)


def running(settings: Settings, victim: str) -> Callable[[], bool]:
    """Return a condition that holds while the victim can be killed."""
    if victim == "driver":
        return lambda: stream_driver.running(settings.home) is not None
    return lambda: Supervisor(settings).states()[victim].pid is not None


def test_every_branch_is_exact_after_kills_under_load(stack: Settings, tills: Tills) -> None:
    tills.send(INVOICES_PER_KILL)
    wait_until(lambda: record_count(stack, TREND.output) > 0, "line items are written", TIMEOUT_S)
    with ThreadPoolExecutor(1, "load") as pool:
        for victim in itertools.islice(itertools.cycle(VICTIMS), MANY_KILLS):
            before, sent = record_count(stack, TREND.output), record_count(stack, TILLS.output)
            sending = pool.submit(tills.send, INVOICES_PER_KILL)
            wait_until(
                lambda sent=sent: record_count(stack, TILLS.output) > sent,  # type: ignore[misc]
                "invoices arrive",
                TIMEOUT_S,
            )
            kill(stack, victim)
            sending.result()
            wait_until(
                lambda before=before: record_count(stack, TREND.output) > before,  # type: ignore[misc]
                f"line items are written after a kill of {victim}",
                TIMEOUT_S,
            )

    check = tills.check()
    tills.wait_until_written(check)

    assert [result for branch in BRANCHES if not (result := check.compare(branch)).is_exact] == []
    tills.require_points(check)
