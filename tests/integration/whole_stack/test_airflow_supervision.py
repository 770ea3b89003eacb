"""Whichever process of the stream is killed, exactly one driver runs afterwards, and every balance is exact on both nodes."""

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

# A busy machine of two cores takes a minute to start Airflow, and another to start Spark.
PATIENCE_S = 240
COMPONENTS = ("airflow-api-server", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer")


@pytest.fixture(scope="module")
def source(full_stack: Settings) -> EventSource:
    return EventSource(full_stack, "balance")


@pytest.fixture(scope="module")
def ledger(full_stack: Settings, source: EventSource) -> Ledger:
    wait_until(lambda: has_python(full_stack), "Airflow has launched the driver", PATIENCE_S)
    admin = AdminClient({"bootstrap.servers": full_stack.kafka.bootstrap_servers})
    wait_until(lambda: partition_count(admin, source.topic) is not None, "it has made its topics", PATIENCE_S)
    entered = Ledger(full_stack)
    source.append(entered.random_events(100))
    wait_until(lambda: entered.is_folded(full_stack), "the first events are folded", PATIENCE_S)
    return entered


def has_python(settings: Settings) -> bool:
    driver = stream_driver.running(settings)
    return driver is not None and driver.python() is not None


def running(settings: Settings) -> tuple[Driver, psutil.Process]:
    """Return the driver and its Python process."""
    driver = stream_driver.running(settings)
    assert driver is not None
    python = driver.python()
    assert python is not None
    return driver, python


def component(settings: Settings, name: str) -> psutil.Process:
    pid = Supervisor(settings).states()[name].pid
    assert pid is not None, name
    return psutil.Process(pid)


def victims(settings: Settings, what: str) -> list[psutil.Process]:
    driver, python = running(settings)
    if what == "all of Airflow":
        return [component(settings, name) for name in COMPONENTS]
    return {
        "JVM": [psutil.Process(driver.pid)],
        "Python driver": [python],
        "task runner": [psutil.Process(driver.parent_pid)],
        "scheduler": [component(settings, "airflow-scheduler")],
    }[what]


def is_gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize("what", ["JVM", "Python driver", "task runner", "scheduler", "all of Airflow"])
def test_after_a_kill_one_driver_runs_again_and_balances_are_exact(
    full_stack: Settings, source: EventSource, ledger: Ledger, what: str
) -> None:
    wait_until(lambda: has_python(full_stack), "the driver runs", PATIENCE_S)
    old, old_python = running(full_stack)
    old_jvm = psutil.Process(old.pid)
    source.append(ledger.random_events(200))
    for event in ledger.random_events(200):
        source.append_raw(event.customerId.encode(), source.serializer.serialize(event))

    for process in victims(full_stack, what):
        process.kill()
    source.flush()
    wait_until(lambda: is_gone(old_jvm), f"{what}: the old driver's JVM has ended", PATIENCE_S)
    source.append(ledger.random_events(200))

    wait_until(lambda: stream_driver.running(full_stack) not in (None, old), f"{what}: restarted", PATIENCE_S)
    assert is_gone(old_python)
    wait_until(lambda: ledger.is_folded(full_stack), f"{what}: all events are folded", PATIENCE_S)
    ledger.assert_exact(full_stack)
    wait_until(
        lambda: ledger.is_answered(full_stack), f"{what}: both nodes are exact", PATIENCE_S, poll_s=0.5
    )


def test_a_stop_is_graceful_and_a_start_continues(
    full_stack: Settings, source: EventSource, ledger: Ledger
) -> None:
    client = airflow_api(full_stack)
    source.append(ledger.random_events(200))
    wait_until(lambda: ledger.is_folded(full_stack), "the driver is at work", PATIENCE_S)
    driver, python = running(full_stack)

    airflow_stack.before_stop(full_stack)

    assert not psutil.pid_exists(driver.pid)
    assert is_gone(python)
    assert client.is_paused(STREAM_DAG)
    assert client.active_runs(STREAM_DAG) == []
    assert next(iter(client.runs(STREAM_DAG).values())) == "success"

    source.append(ledger.random_events(200))
    airflow_stack.after_start(full_stack)

    wait_until(lambda: ledger.is_folded(full_stack), "all events are folded", PATIENCE_S)
    ledger.assert_exact(full_stack)
