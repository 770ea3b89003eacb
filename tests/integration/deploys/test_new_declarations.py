"""A further read model gets its driver and nodes without a moment in which nothing is served; one with an error changes nothing."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from include.airflow.client import airflow_api
from include.settings import Settings
from include.stream import driver_configuration, driver_launch
from stack.components.stream import HandoverError
from stack.launchers import stream_driver
from stack.lifecycle import start
from stack.readiness import StartError
from stack.supervision.supervisor import Supervisor
from tests.integration.deploys.traffic import Traffic, assert_same_launch
from tests.support.balance_copy import with_balance_copy
from tests.support.http.held_server import servers_of
from tests.support.http.local_http import HTTP
from tests.support.stream_events import random_event
from tests.support.stream_process import EventSource
from tests.support.waiting import wait_until

LOG = logging.getLogger(__name__)
MODEL = "further"
TIMEOUT_S = 300.0
SERVERS = ("node-1-http", "node-2-http")
MATERIALIZERS = ("node-1-materializer", "node-2-materializer")
# Where every core is busy, a materializer needs longer than its node's session (6 s) to start.
SLOW_S = 8.0
SLOW_START = f"""
import sys
import time

if "query_api.materializer" in sys.modules:
    time.sleep({SLOW_S})
"""


def pids(settings: Settings) -> dict[str, int | None]:
    return {name: state.pid for name, state in Supervisor(settings).states().items()}


@contextmanager
def killed_new_server(settings: Settings, name: str) -> Iterator[None]:
    """Kill the new server of a holder during a block, as soon as it runs."""

    def kill() -> None:
        wait_until(lambda: len(servers_of(settings, name)) == 2, "the new server runs", TIMEOUT_S)
        servers_of(settings, name)[-1].kill()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        killer.join()


def driver_pid(settings: Settings) -> int:
    driver = stream_driver.running(settings.home)
    assert driver is not None
    return driver.pid


def is_served(port: int, key: str) -> bool:
    try:
        return HTTP.get(f"http://127.0.0.1:{port}/api/read-models/{MODEL}/records/{key}").is_success
    except httpx.HTTPError:
        return False


def test_a_further_read_model_replaces_driver_and_nodes_one_after_the_other(
    stack: Settings, folder: Path, traffic: Traffic
) -> None:
    before, old_driver = pids(stack), driver_pid(stack)
    held = (*SERVERS, *MATERIALIZERS)
    old_servers = {name: servers_of(stack, name) for name in held}
    launch = driver_launch.read_report(stack.home)
    with traffic.running():
        time.sleep(3.0)  # of usual folds, with which the longest pause is compared
        began_s = time.time()
        with_balance_copy(stack, MODEL, folder)
        with (folder / f"{MODEL}.py").open("a", encoding="utf-8") as module:
            module.write(SLOW_START)
        for name in (SERVERS[0], MATERIALIZERS[0]):
            with (
                killed_new_server(stack, name),
                pytest.raises(StartError, match="it ended with status -9"),
            ):
                start(stack)
            assert servers_of(stack, name) == old_servers[name]
        start(stack)
        took_s = time.time() - began_s
        time.sleep(3.0)
    traffic.settle()

    after = pids(stack)
    # The holders stay.
    assert after == before
    assert not any(set(servers_of(stack, name)) & set(old_servers[name]) for name in held)
    assert driver_pid(stack) != old_driver
    assert traffic.without_answer == []
    assert traffic.failed == []
    assert_same_launch(stack, launch)

    event = random_event()
    EventSource(stack, MODEL).append([event])
    wait_until(
        lambda: all(is_served(port, event.customerId) for port in stack.query_ports),
        "both nodes serve the read model",
        TIMEOUT_S,
    )
    # Its DAGs are read again without a restart.
    api = airflow_api(stack.home, stack.airflow)
    wait_until(
        lambda: MODEL in str(api._call("GET", "dags/rebuild/details")),
        "the form of a rebuild offers the read model",
        TIMEOUT_S,
        poll_s=1.0,
    )
    LOG.warning(
        "`up` took %.1f s; the longest time without a fold was %.1f s; %d lookups",
        took_s,
        traffic.longest_pause_s(began_s),
        traffic.lookups,
    )


def test_a_setting_of_jobs_restarts_nothing_and_reaches_airflow(stack: Settings) -> None:
    before, grace_h = pids(stack), 7.25

    start(stack.changed(rebuild_grace_h=grace_h))

    assert pids(stack) == before
    api = airflow_api(stack.home, stack.airflow)
    wait_until(
        lambda: str(grace_h) in str(api._call("GET", "dags/rebuild/details")),
        "the form of a rebuild has the new default",
        TIMEOUT_S,
        poll_s=1.0,
    )


@pytest.mark.parametrize(
    ("module", "lines", "error"),
    [
        ("broken", "DECLARATIONS = [unknown]", "name 'unknown' is not defined"),
        # Only Spark's driver, which knows the checkpoint, finds this.
        (
            MODEL,
            "DECLARATIONS = [replace(DECLARATIONS[0], folds={1: {'amount': 'sum(amount)'}})]",
            "fold revision 1 of further is not what the state was folded with",
        ),
    ],
)
def test_a_read_model_with_an_error_changes_nothing(
    stack: Settings, folder: Path, traffic: Traffic, module: str, lines: str, error: str
) -> None:
    before, old_driver = pids(stack), driver_pid(stack)
    path = folder / f"{module}.py"
    correct = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(correct + lines, encoding="utf-8")

    with traffic.running(), pytest.raises(HandoverError, match=error):
        start(stack)

    assert pids(stack) == before
    assert driver_pid(stack) == old_driver
    traffic.settle()
    report = driver_configuration.read_report(stack.home)
    assert report is not None
    assert error in report.error

    if correct:
        path.write_text(correct, encoding="utf-8")
    else:
        path.unlink()
    start(stack)
    assert pids(stack) == before
    assert driver_pid(stack) == old_driver
    assert traffic.without_answer == []
    assert traffic.failed == []
