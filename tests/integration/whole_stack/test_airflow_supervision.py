"""After a kill of any process of the stream, exactly one driver runs again, and every balance is exact on both nodes."""

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from include.airflow.login import airflow_api
from include.airflow.names import STREAM_DAG
from include.kafka.topics import partition_count
from include.settings import Settings
from stack.components import airflow as airflow_stack
from stack.launchers import stream_driver
from stack.launchers.stream_driver import Driver
from stack.supervision.supervisor import Supervisor
from tests.support.stream_events import Ledger
from tests.support.stream_process import EventSource
from tests.support.waiting import wait_until

# On a busy machine with two cores, Airflow takes a minute to start, and Spark another.
TIMEOUT_S = 240
COMPONENTS = ("airflow-api-server", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer")


@pytest.fixture(scope="module")
def source(full_stack: Settings) -> EventSource:
    return EventSource(full_stack, "balance")


@pytest.fixture(scope="module")
def ledger(full_stack: Settings, source: EventSource) -> Ledger:
    wait_until(lambda: has_python(full_stack), "Airflow has launched the driver", TIMEOUT_S)
    admin = AdminClient({"bootstrap.servers": full_stack.kafka.bootstrap_servers})
    wait_until(
        lambda: partition_count(admin, source.topic) is not None,
        "the driver has created its topics",
        TIMEOUT_S,
    )
    ledger = Ledger(full_stack)
    source.append(ledger.random_events(100))
    wait_until(lambda: ledger.is_folded(full_stack), "the first events are folded", TIMEOUT_S)
    return ledger


def has_python(settings: Settings) -> bool:
    driver = stream_driver.running(settings.home)
    return driver is not None and driver.python() is not None


def running(settings: Settings) -> tuple[Driver, psutil.Process]:
    """Return the driver and its Python process."""
    driver = stream_driver.running(settings.home)
    assert driver is not None
    python = driver.python()
    assert python is not None
    return driver, python


def component(settings: Settings, name: str) -> psutil.Process:
    pid = Supervisor(settings).states()[name].pid
    assert pid is not None, name
    return psutil.Process(pid)


def victims(settings: Settings, victim: str) -> list[psutil.Process]:
    driver, python = running(settings)
    if victim == "all of Airflow":
        return [component(settings, name) for name in COMPONENTS]
    return {
        "JVM": [psutil.Process(driver.pid)],
        "Python driver": [python],
        "task runner": [psutil.Process(driver.parent_pid)],
        "scheduler": [component(settings, "airflow-scheduler")],
    }[victim]


def has_ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("victim", ["JVM", "Python driver", "task runner", "scheduler", "all of Airflow"])
def test_after_a_kill_one_driver_runs_again_and_balances_are_exact(
    full_stack: Settings, source: EventSource, ledger: Ledger, victim: str
) -> None:
    wait_until(lambda: has_python(full_stack), "the driver runs", TIMEOUT_S)
    old, old_python = running(full_stack)
    old_jvm = psutil.Process(old.pid)
    source.append(ledger.random_events(200))
    for event in ledger.random_events(200):
        source.append_raw(event.customerId.encode(), source.serializer.serialize(event))

    for process in victims(full_stack, victim):
        process.kill()
    source.flush()
    wait_until(lambda: has_ended(old_jvm), f"{victim}: the old driver's JVM has ended", TIMEOUT_S)
    source.append(ledger.random_events(200))

    wait_until(
        lambda: stream_driver.running(full_stack.home) not in (None, old), f"{victim}: restarted", TIMEOUT_S
    )
    assert has_ended(old_python)
    wait_until(lambda: ledger.is_folded(full_stack), f"{victim}: all events are folded", TIMEOUT_S)
    ledger.assert_exact(full_stack)
    wait_until(
        lambda: ledger.is_answered(full_stack), f"{victim}: both nodes are exact", TIMEOUT_S, poll_s=0.5
    )


def test_a_stop_is_graceful_and_a_start_continues(
    full_stack: Settings, source: EventSource, ledger: Ledger
) -> None:
    client = airflow_api(full_stack.home, full_stack.airflow)
    source.append(ledger.random_events(200))
    wait_until(lambda: ledger.is_folded(full_stack), "the driver folds events", TIMEOUT_S)
    driver, python = running(full_stack)

    airflow_stack.before_stop(full_stack)

    assert not psutil.pid_exists(driver.pid)
    assert has_ended(python)
    assert client.is_paused(STREAM_DAG)
    assert client.active_runs(STREAM_DAG) == []
    assert next(iter(client.runs(STREAM_DAG).values())) == "success"

    source.append(ledger.random_events(200))
    airflow_stack.after_start(full_stack)

    wait_until(lambda: ledger.is_folded(full_stack), "all events are folded", TIMEOUT_S)
    ledger.assert_exact(full_stack)
