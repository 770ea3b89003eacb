"""Whatever of the stream is killed, one driver runs again, never two, and every balance is exact."""

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
def source(airflow: Settings) -> EventSource:
    return EventSource(airflow, "balance")


@pytest.fixture(scope="module")
def ledger(airflow: Settings, source: EventSource) -> Ledger:
    wait_until(lambda: has_python(airflow), "Airflow has launched the driver", PATIENCE_S)
    admin = AdminClient({"bootstrap.servers": airflow.kafka.bootstrap_servers})
    wait_until(lambda: partition_count(admin, source.topic) is not None, "it has made its topics", PATIENCE_S)
    entered = Ledger(airflow)
    source.append(entered.random_events(100))
    wait_until(lambda: entered.is_folded(airflow), "the first events are folded", PATIENCE_S)
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
    airflow: Settings, source: EventSource, ledger: Ledger, what: str
) -> None:
    wait_until(lambda: has_python(airflow), "the driver runs", PATIENCE_S)
    old, old_python = running(airflow)
    old_jvm = psutil.Process(old.pid)
    source.append(ledger.random_events(200))

    for process in victims(airflow, what):
        process.kill()
    wait_until(lambda: is_gone(old_jvm), f"{what}: the old driver's JVM has ended", PATIENCE_S)
    source.append(ledger.random_events(200))

    wait_until(lambda: stream_driver.running(airflow) not in (None, old), f"{what}: restarted", PATIENCE_S)
    assert is_gone(old_python)
    wait_until(lambda: ledger.is_folded(airflow), f"{what}: all events are folded", PATIENCE_S)
    ledger.assert_exact(airflow)


def test_a_stop_is_graceful_and_a_start_carries_on(
    airflow: Settings, source: EventSource, ledger: Ledger
) -> None:
    client = airflow_api(airflow)
    source.append(ledger.random_events(200))
    wait_until(lambda: ledger.is_folded(airflow), "the driver is at work", PATIENCE_S)
    driver, python = running(airflow)

    airflow_stack.before_stop(airflow)

    assert not psutil.pid_exists(driver.pid)
    assert is_gone(python)
    assert client.is_paused(STREAM_DAG)
    assert client.active_runs(STREAM_DAG) == []
    assert next(iter(client.runs(STREAM_DAG).values())) == "success"

    source.append(ledger.random_events(200))
    airflow_stack.after_start(airflow)

    wait_until(lambda: ledger.is_folded(airflow), "all events are folded", PATIENCE_S)
    ledger.assert_exact(airflow)
