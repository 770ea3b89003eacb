"""`./foldlake up --plan` names what has changed for each process."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from cli.display.start_display import planned_lines
from include.settings import (
    CHECKOUT,
    PREFIX,
    VARIABLES,
    Settings,
    serving_environment,
    settings_environment,
)
from include.settings.settings import JOB_SETTINGS
from include.stream import driver_configuration
from stack import plan
from stack.components import airflow, query_nodes, stream
from stack.launchers import stream_driver
from stack.plan import KEEP, NEXT_START, REPLACE, START, PlannedProcess
from stack.supervision import exec_process
from stack.supervision.configuration import SecretsFile, declarations_digest, secrets_path
from stack.supervision.process import Process
from tests.support.waiting import wait_until
from tests.support.written_descriptions import written_descriptions

WAITS = Process("waits", ("/bin/sleep", "600"), 1, bool, reads_declarations=True)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "read_models").mkdir()
    return Settings.of(
        home=tmp_path / "home",
        read_models_dir=tmp_path / "read_models",
        alert_webhook_url="http://chat.example/hook/staple",
    )


@contextmanager
def running(settings: Settings) -> Iterator[int]:
    """Run the process as supervisord does, and yield its id."""
    description = written_descriptions(settings, [WAITS])[WAITS.name]
    with subprocess.Popen(
        [sys.executable, "-I", "-S", exec_process.__file__, description, secrets_path(settings.home)]
    ) as process:
        try:
            wait_until(lambda: psutil.Process(process.pid).name() == "sleep", "the process runs")
            yield process.pid
        finally:
            process.kill()


def planned(settings: Settings, pid: int | None, process: Process = WAITS) -> PlannedProcess:
    return plan._planned(settings, process, pid, SecretsFile(secrets_path(settings.home)))


def test_a_process_that_does_not_run_is_started(settings: Settings) -> None:
    assert planned(settings, None) == PlannedProcess("waits", START)
    assert {one.action for one in plan.plan(settings)} == {START}
    assert [one.name for one in plan.plan(settings, ["kafka"])] == ["kafka"]


def test_each_change_is_named(settings: Settings) -> None:
    with running(settings) as pid:
        assert planned(settings, pid) == PlannedProcess("waits", KEEP)

        changed = settings.changed(stream_pace="throughput", kafka_heap_mb=400)
        settings_found = ("FOLDLAKE_KAFKA_HEAP_MB", "FOLDLAKE_STREAM_PACE")
        assert planned(changed, pid) == PlannedProcess("waits", REPLACE, settings_found)
        secret = planned(settings.changed(alert_webhook_url="http://chat.example/hook/other"), pid)
        assert secret.reasons == ("FOLDLAKE_ALERT_WEBHOOK_URL",)
        other = Process("waits", ("/bin/sleep", "601"), 1, bool, reads_declarations=True)
        assert planned(settings, pid, other).reasons == ("command",)
        assert planned(settings, pid, replace(WAITS, code=("foldlake",))).reasons == ("code",)
        assert settings.read_models_dir is not None
        (settings.read_models_dir / "further.py").write_text("DECLARATIONS = []")
        assert planned(settings, pid).reasons == ("declarations",)


def test_the_driver_is_replaced_if_its_configuration_changes_and_with_its_supervisor(
    settings: Settings,
) -> None:
    kept = PlannedProcess(stream.STREAM_SUPERVISOR, KEEP)
    driver_configuration.request(settings, declarations_digest(settings.declaration_folders))
    assert plan._driver(settings, kept) == []

    lock = stream_driver.acquire(settings.home, wait_s=0.0)
    try:
        own = stream_driver.Driver(1, 1, 0.0, "local")
        stream_driver.announce(settings.home, own)
        assert plan._driver(settings, kept) == [(stream.UPDATE_ORDER, PlannedProcess("stream-driver", KEEP))]
        changed, pace = settings.changed(stream_pace="throughput"), "FOLDLAKE_STREAM_PACE"
        assert plan._driver(changed, kept) == [
            (stream.UPDATE_ORDER, PlannedProcess("stream-driver", REPLACE, (pace,)))
        ]
        new = PlannedProcess(stream.STREAM_SUPERVISOR, REPLACE, ("code",))
        assert plan._driver(changed, new) == [
            (stream.START_ORDER, PlannedProcess("stream-driver", REPLACE, (pace, "code")))
        ]
    finally:
        lock.release()


def test_a_setting_of_jobs_concerns_neither_nodes_nor_the_driver(settings: Settings) -> None:
    changed = settings.changed(
        quality_sample_keys=5, rebuild_grace_h=1.0, retention_reports_h=1.0, airflow_start_delay_s=3.0
    )

    assert serving_environment(changed) == serving_environment(settings)
    assert driver_configuration.request(changed, "").is_like(driver_configuration.request(settings, ""))
    assert settings_environment(changed) != settings_environment(settings)
    assert {process.reads_job_settings for process in query_nodes.processes(settings)} == {False}


def test_a_setting_of_nodes_does_not_concern_the_driver(settings: Settings) -> None:
    changed = settings.changed(auth="keys", node_max_age_s=61.0, caller_rate=5.0, node_peer_port=5200)

    assert serving_environment(changed) != serving_environment(settings)
    assert driver_configuration.request(changed, "").is_like(driver_configuration.request(settings, ""))
    wanted = driver_configuration.request(settings.changed(auth="keys", stream_pace="throughput"), "")
    assert not wanted.is_like(driver_configuration.request(settings, ""))
    assert wanted.settings().stream.pace == "throughput"


def test_tasks_of_airflow_get_changed_settings_later(settings: Settings) -> None:
    airflow.update(settings, print)
    assert plan._tasks(settings) == []

    changed = settings.changed(quality_sample_keys=5, stream_pace="throughput")
    reasons = ("FOLDLAKE_QUALITY_SAMPLE_KEYS", "FOLDLAKE_STREAM_PACE")
    assert plan._tasks(changed) == [PlannedProcess("airflow-tasks", NEXT_START, reasons)]
    airflow.update(changed, print)
    assert plan._tasks(changed) == []


def test_no_process_that_lacks_the_settings_of_jobs_reads_them() -> None:
    fields = {
        field for variable, (_, field) in VARIABLES.items() if f"{PREFIX}{variable.upper()}" in JOB_SETTINGS
    }
    read = re.compile(rf"\.(rebuild|retention|quality|airflow)\.({'|'.join(fields)})\b")
    roots = (
        "query_api",
        "spark_jobs/streaming",
        "spark_jobs/folding",
        "spark_jobs/routing",
        "include/stream",
        "include/status",
    )
    files = [path for root in roots for path in (CHECKOUT / root).rglob("*.py")]

    assert len(files) > 100
    assert [str(path) for path in files if read.search(path.read_text(encoding="utf-8"))] == []


def test_the_lines_name_what_changes() -> None:
    kept = PlannedProcess("kafka", KEEP)
    replaced = PlannedProcess("node-1-http", REPLACE, ("FOLDLAKE_STREAM_PACE", "declarations"))

    assert planned_lines([kept, replaced]).splitlines() == [
        "  kafka                 keep",
        "  node-1-http           replace  FOLDLAKE_STREAM_PACE, declarations",
    ]
    assert planned_lines([kept]).splitlines()[-1] == "Nothing changes."
