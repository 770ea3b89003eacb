"""A Spark job in Airflow: its priority; its log, whose lines keep their level, and in which a warning that repeats is logged once."""

import logging
from types import SimpleNamespace

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from structlog.testing import capture_logs

from include.airflow.spark_tasks import SparkJobOperator, prioritized
from include.settings import Settings
from include.spark.log_levels import level_of

WARNING = "26/11/26 03:49:57 WARN AvroSerializer: Writing Avro files with non-nullable Avro schema will throw"
ERROR = "2026-11-26 03:49:58,004Z ERROR foldlake.lake: lake/balance was still being written"


@pytest.mark.parametrize(
    ("line", "level", "message"),
    [
        (WARNING, logging.WARNING, WARNING.partition(" WARN ")[2]),
        (ERROR, logging.ERROR, ERROR.partition(" ERROR ")[2]),
        (
            "WARNING: Using incubator modules: jdk.incubator.vector",
            logging.WARNING,
            "Using incubator modules: jdk.incubator.vector",
        ),
        (
            "2026-11-26 03:49:57,310Z INFO foldlake.work: progress: 1 of 2 (WARN)",
            logging.INFO,
            "foldlake.work: progress: 1 of 2 (WARN)",
        ),
        ('Setting Spark log level to "WARN".', logging.INFO, 'Setting Spark log level to "WARN".'),
    ],
)
def test_the_level_of_a_line(line: str, level: int, message: str) -> None:
    assert level_of(line) == (level, message)


@pytest.mark.parametrize(
    ("dag_id", "run_id", "master", "niceness"),
    [
        ("compaction", "manual__a", "local[2]", 0),
        ("quality", "manual__a", "local[2]", 0),
        ("compaction", "scheduled__a", "local[2]", 15),
        ("quality", "asset_triggered__a", "local[2]", 15),
        ("rebuild", "manual__a", "local[2]", 15),
        ("compaction", "manual__a", "spark://host:7077", 15),
    ],
)
def test_a_job_that_somebody_waits_for_has_a_normal_priority(
    dag_id: str, run_id: str, master: str, niceness: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOLDLAKE_LAKE_MASTER", master)
    monkeypatch.setenv("FOLDLAKE_LAKE_NICENESS", "15")
    seen: list[dict[str, str]] = []
    monkeypatch.setattr(SparkSubmitOperator, "execute", lambda own, _: seen.append(own.env_vars or {}))

    operator = SparkJobOperator(task_id="job", application="job.py")
    operator.execute({"dag_run": SimpleNamespace(dag_id=dag_id, run_id=run_id)})

    assert seen == [{} if niceness else {"FOLDLAKE_LAKE_NICENESS": "0"}]
    run = SimpleNamespace(dag_id=dag_id, run_id=run_id)
    assert prioritized(Settings(), run).lake.niceness == niceness


def test_warnings_are_logged_as_warnings_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = {"deploy_mode": "client", "master": "local"}
    monkeypatch.setattr(SparkSubmitHook, "_resolve_connection", lambda _hook: connection)
    hook = SparkJobOperator(task_id="job", application="job.py")._get_hook()
    later = WARNING.replace("03:49:57", "03:50:02")

    with capture_logs() as logged:
        hook._process_spark_submit_log(iter(["one\n", WARNING, later, ERROR, "java.lang.Error: no"]))

    assert [(line["log_level"], line["event"]) for line in logged] == [
        ("info", "one"),
        ("warning", WARNING),
        ("error", ERROR),
        ("info", "java.lang.Error: no"),
    ]
