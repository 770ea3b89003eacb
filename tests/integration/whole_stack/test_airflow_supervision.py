"""After a kill of a process of the stream, one driver runs again, and every balance is exact; Airflow's processes do not affect it."""

from collections.abc import Sequence
from contextlib import suppress

import psutil
import pytest
from confluent_kafka.admin import AdminClient

from include.airflow.client import AirflowUnavailableError, airflow_api
from include.airflow.names import RETIREMENT_DAG, STREAM_DAG
from include.kafka.topics import partition_count
from include.settings import Settings
from include.stream import launch_failures
from stack.components import stream
from stack.components.stream import STREAM_SUPERVISOR
from stack.launchers import stream_driver
from stack.launchers.stream_driver import Driver
from stack.supervision.supervisor import Supervisor
from tests.support.faults.small_disk import SmallDisk
from tests.support.stream_events import Ledger
from tests.support.stream_process import EventSource
from tests.support.waiting import wait_until

# On a busy machine with two cores, Airflow takes a minute to start, and Spark another.
TIMEOUT_S = 240
HEALTHY = {"metadatabase", "scheduler", "triggerer", "dag_processor"}
COMPONENTS = ("airflow-api-server", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer")


@pytest.fixture(scope="module")
def source(full_stack: Settings) -> EventSource:
    return EventSource(full_stack, "balance")


@pytest.fixture(scope="module")
def ledger(full_stack: Settings, source: EventSource) -> Ledger:
    wait_until(lambda: has_python(full_stack), "Airflow has launched the driver", TIMEOUT_S)
    admin = AdminClient(full_stack.kafka_connection.client_settings)
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


def are_up(settings: Settings, names: Sequence[str]) -> bool:
    states = Supervisor(settings).states()
    return all(states[name].pid is not None for name in names)


def victims(settings: Settings, victim: str) -> list[psutil.Process]:
    driver, python = running(settings)
    return {
        "JVM": [psutil.Process(driver.pid)],
        "Python driver": [python],
        "supervisor": [component(settings, STREAM_SUPERVISOR)],
    }[victim]


def has_ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.mark.parametrize(
    "victim",
    ["JVM", *(pytest.param(name, marks=pytest.mark.endurance) for name in ("Python driver", "supervisor"))],
)
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
    if victim != "supervisor":
        series = launch_failures.read(full_stack.home)
        assert series is not None
        assert series.last_error == "killed by SIGKILL"
    wait_until(lambda: ledger.is_folded(full_stack), f"{victim}: all events are folded", TIMEOUT_S)
    ledger.assert_exact(full_stack)
    wait_until(
        lambda: ledger.is_answered(full_stack), f"{victim}: both nodes are exact", TIMEOUT_S, poll_s=0.5
    )


@pytest.mark.parametrize(
    "killed",
    [*(pytest.param((name,), marks=pytest.mark.endurance) for name in COMPONENTS), COMPONENTS],
    ids="-".join,
)
def test_the_driver_folds_while_airflow_is_killed(
    full_stack: Settings, source: EventSource, ledger: Ledger, killed: tuple[str, ...]
) -> None:
    wait_until(lambda: has_python(full_stack), "the driver runs", TIMEOUT_S)
    driver, python = running(full_stack)

    for process in [component(full_stack, name) for name in killed]:
        process.kill()
    source.append(ledger.random_events(100))
    wait_until(lambda: ledger.is_folded(full_stack), "folded meanwhile")
    wait_until(lambda: are_up(full_stack, killed), "restarted", TIMEOUT_S)

    assert running(full_stack) == (driver, python)
    ledger.assert_exact(full_stack)


@pytest.mark.endurance
def test_the_stream_goes_on_while_airflow_has_no_space(
    full_stack: Settings, source: EventSource, ledger: Ledger, airflow_disk: SmallDisk
) -> None:
    if airflow_disk.refusal:
        pytest.skip(airflow_disk.refusal)
    client = airflow_api(full_stack.home, full_stack.airflow)
    wait_until(lambda: client.health() >= HEALTHY, "Airflow runs", TIMEOUT_S)
    wait_until(lambda: ledger.is_folded(full_stack), "the driver folds events", TIMEOUT_S)
    driver, python = running(full_stack)

    with airflow_disk.filled():
        with suppress(AirflowUnavailableError):
            client.trigger(RETIREMENT_DAG)  # a run, whose rows and logs find no space
        source.append(ledger.random_events(200))
        wait_until(lambda: ledger.is_folded(full_stack), "all events are folded")

    wait_until(lambda: client.health() >= HEALTHY, "Airflow runs", TIMEOUT_S)
    retirement = client.trigger(RETIREMENT_DAG)
    wait_until(lambda: client.run_state(RETIREMENT_DAG, retirement) == "success", "a run succeeds", TIMEOUT_S)
    (run,) = client.active_runs(STREAM_DAG)
    assert client.running_tasks(STREAM_DAG, run) == ["driver"]
    assert running(full_stack) == (driver, python)
    ledger.assert_exact(full_stack)


def test_a_stop_is_graceful_and_a_start_continues(
    full_stack: Settings, source: EventSource, ledger: Ledger
) -> None:
    client = airflow_api(full_stack.home, full_stack.airflow)
    wait_until(lambda: client.health() >= HEALTHY, "Airflow runs", TIMEOUT_S)
    source.append(ledger.random_events(200))
    wait_until(lambda: ledger.is_folded(full_stack), "the driver folds events", TIMEOUT_S)
    driver, python = running(full_stack)

    stream.before_stop(full_stack)

    assert not psutil.pid_exists(driver.pid)
    assert has_ended(python)
    assert client.is_paused(STREAM_DAG)
    assert client.active_runs(STREAM_DAG) == []
    assert next(iter(client.runs(STREAM_DAG).values())) == "success"

    source.append(ledger.random_events(200))
    stream.after_start(full_stack)

    wait_until(lambda: ledger.is_folded(full_stack), "all events are folded", TIMEOUT_S)
    ledger.assert_exact(full_stack)


@pytest.mark.endurance
def test_an_operator_ends_the_driver_in_airflow(
    full_stack: Settings, source: EventSource, ledger: Ledger
) -> None:
    client = airflow_api(full_stack.home, full_stack.airflow)
    wait_until(lambda: has_python(full_stack), "the driver runs", TIMEOUT_S)
    driver, _ = running(full_stack)
    (run,) = client.active_runs(STREAM_DAG)
    wait_until(lambda: client.running_tasks(STREAM_DAG, run), "the task follows the driver", TIMEOUT_S)

    client.mark_run(STREAM_DAG, run, "failed")

    wait_until(
        lambda: stream_driver.running(full_stack.home) not in (None, driver), "another driver runs", TIMEOUT_S
    )
    source.append(ledger.random_events(100))
    wait_until(lambda: ledger.is_folded(full_stack), "all events are folded", TIMEOUT_S)
    ledger.assert_exact(full_stack)
