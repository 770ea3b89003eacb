"""A driver that fails at once is launched at growing intervals, is alerted on once, and is launched at once by the next `up`."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
import pytest

from include.airflow.client import airflow_api
from include.airflow.names import STREAM_DAG
from include.settings import CHECKOUT, Settings, settings_environment
from include.stream import launch_failures
from include.stream.launch_failures import LaunchFailures
from stack.components import stream
from stack.launchers import stream_driver
from stack.lifecycle import start
from stack.supervision.supervisor import Supervisor
from tests.support.http.webhook import Webhook, running_webhook
from tests.support.temporary_stack import temporary_stack
from tests.support.waiting import wait_until

# Five failures with the delays between them take minutes. The delays themselves have unit tests.
pytestmark = pytest.mark.endurance

TIMEOUT_S = 240
WRONG_MASTER = "sparkle://127.0.0.1:7077"
# The first failure after which the driver is not launched at once, and the next ones.
FAILURES = 5


@pytest.fixture(scope="module")
def webhook() -> Iterator[Webhook]:
    with running_webhook() as server:
        yield server


@pytest.fixture(scope="module")
def stack(keep_home: Callable[[], bool], webhook: Webhook) -> Iterator[Settings]:
    """Settings of a stack whose Spark master is misspelled, after several failures of the driver."""
    wrong = {"stream_master": WRONG_MASTER, "alert_webhook_url": webhook.url, "compaction_interval_s": 0}
    with temporary_stack(("kafka", "registry", "airflow", "stream"), keep_home, **wrong) as settings:
        wait_until(
            lambda: (series := waiting(settings)) is not None and series.failures >= FAILURES,
            "the driver has failed again and again",
            TIMEOUT_S,
        )
        yield settings


def waiting(settings: Settings) -> LaunchFailures | None:
    """Return the series of failures while the next launch is awaited."""
    series = launch_failures.read(settings.home)
    return series if series is not None and not series.launched_at else None


def awaited(settings: Settings) -> LaunchFailures:
    wait_until(lambda: waiting(settings) is not None, "the next launch is awaited", TIMEOUT_S)
    series = waiting(settings)
    assert series is not None
    return series


def postpone(settings: Settings) -> LaunchFailures:
    """Postpone the next launch, as a long series does, and restart the parts of Airflow that run the task."""
    later = (datetime.now(UTC) + timedelta(seconds=280)).isoformat()
    postponed = replace(awaited(settings), next_launch_at=later)
    launch_failures.write(settings.home, postponed)
    states = Supervisor(settings).states()
    for component in ("airflow-scheduler", "airflow-triggerer"):
        pid = states[component].pid
        assert pid is not None
        psutil.Process(pid).kill()
    return postponed


def status(settings: Settings) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "cli", "status", "--json"],
        cwd=CHECKOUT,
        env={**os.environ, **settings_environment(settings), "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_runs_and_logs_do_not_multiply(stack: Settings) -> None:
    series = awaited(stack)

    lasts = datetime.fromisoformat(series.next_launch_at) - datetime.fromisoformat(series.since)
    # The delays after the last two failures.
    assert lasts > timedelta(seconds=5 + 10)
    runs = airflow_api(stack.home, stack.airflow).runs(STREAM_DAG, limit=50)
    # Six tries in each run.
    assert len(runs) <= series.failures // 6 + 1


def test_status_names_the_cause(stack: Settings) -> None:
    awaited(stack)

    shown = status(stack)["failedLaunches"]

    assert shown["failures"] >= FAILURES
    assert datetime.fromisoformat(shown["since"]) < datetime.now(UTC)
    assert "Could not parse Master URL" in shown["lastError"]
    assert "\n" not in shown["lastError"]


def test_there_is_one_alert_for_all_failures(stack: Settings, webhook: Webhook) -> None:
    awaited(stack)

    (body,) = webhook.received
    assert body["failures"] == launch_failures.ALERT_FAILURES
    assert "Could not parse Master URL" in body["text"]


def test_a_restart_of_airflow_does_not_begin_a_new_series(stack: Settings, webhook: Webhook) -> None:
    client = airflow_api(stack.home, stack.airflow)
    before = postpone(stack)
    wait_until(lambda: client.health() >= {"scheduler", "metadatabase"}, "Airflow runs again", TIMEOUT_S)

    # By now a scheduler that had forgotten the series would have launched the driver.
    wait_until(
        lambda: any(client.running_tasks(STREAM_DAG, run) for run in client.active_runs(STREAM_DAG)),
        "the task waits again",
        TIMEOUT_S,
    )

    assert awaited(stack) == before
    assert len(webhook.received) == 1


def test_up_with_a_corrected_setting_launches_the_driver_at_once(stack: Settings) -> None:
    postponed = postpone(stack)
    corrected = stack.changed(stream_master="")

    start(corrected, ("kafka", "registry", "airflow", "stream"))

    wait_until(lambda: stream_driver.running(stack.home) is not None, "the driver runs", TIMEOUT_S)
    assert datetime.now(UTC) < datetime.fromisoformat(postponed.next_launch_at)


def test_down_does_not_wait_for_a_launch_that_is_not_due(stack: Settings) -> None:
    driver = stream_driver.running(stack.home)
    assert driver is not None
    client = airflow_api(stack.home, stack.airflow)
    driver.kill()
    # The series goes on: the driver has not run for long.
    series = awaited(stack)
    assert series.failures > FAILURES
    assert series.last_error == "killed by SIGKILL"

    stream.before_stop(stack)

    assert client.active_runs(STREAM_DAG) == []
    assert stream_driver.running(stack.home) is None
    assert datetime.now(UTC) < datetime.fromisoformat(series.next_launch_at)
