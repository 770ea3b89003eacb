"""Airflow tasks that run a Spark job, or a check or comparison that may need one. A task ends when its job or check ends."""

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowException
from airflow.sdk import Asset, AssetAlias, Context

from include.airflow.names import (
    LAKE_ALIAS,
    SPARK_LAKE_CONNECTION,
    SPARK_STREAM_CONNECTION,
    check_due_asset,
    is_rebuild,
    lake_asset,
)
from include.airflow.run_hooks import RequestedFirst, is_requested
from include.airflow.web import table_details
from include.quality.check_engines import run_check_with_engines
from include.quality.check_run import PASSED
from include.settings import CHECKOUT, Settings
from include.spark.lake_config import lake_config
from include.spark.log_levels import level_of
from include.spark.stream_config import REPORT_SOON, source_partitions, stream_config

NORMAL_PRIORITY = {"FOLDLAKE_LAKE_NICENESS": "0"}


class SparkJobOperator(SparkSubmitOperator):
    """Runs a Spark application; the lines of its log keep their level, and a warning that repeats is logged once.

    A job that somebody has started has a normal priority. Those of a rebuild, which run for minutes, do not.
    """

    def execute(self, context: Context) -> None:
        """Run the application."""
        settings = Settings()
        if prioritized(settings, context["dag_run"]) is not settings:
            self.env_vars = NORMAL_PRIORITY
        super().execute(context)

    def _get_hook(self) -> SparkSubmitHook:
        hook = super()._get_hook()
        forward = hook._process_spark_submit_log  # noqa: SLF001 - the provider has no other way to it

        def process(lines: Iterator[Any]) -> None:
            forward(_without_warnings(hook, lines))

        hook._process_spark_submit_log = process  # type: ignore[method-assign, assignment]  # noqa: SLF001
        return hook


def prioritized(settings: Settings, dag_run: Any) -> Settings:  # noqa: ANN401 - Airflow's
    """Return the settings of a run's jobs: with a normal priority if somebody waits for them on this machine."""
    is_local = settings.lake.master.startswith("local")
    if is_local and is_requested(str(dag_run.run_id)) and not is_rebuild(str(dag_run.dag_id)):
        return settings.changed(lake_niceness=0)
    return settings


def _without_warnings(hook: SparkSubmitHook, lines: Iterator[Any]) -> Iterator[str]:
    """Yield a job's output for the hook, which logs each line as information, and log warnings and errors here."""
    seen: set[str] = set()
    for raw in lines:
        line = str(raw).strip()
        level, message = level_of(line)
        if level < logging.WARNING:
            yield line
            continue
        # What the hook's error ends with, if the job fails.
        hook._last_submit_log_lines.append(line)  # noqa: SLF001
        if message not in seen:
            seen.add(message)
            hook.log.log(level, "%s", line)


def check_with_engines(
    operator: SparkJobOperator,
    settings: Settings,
    arguments: Sequence[str],
    execute: Callable[[], object],
    program: Sequence[str] = (),
) -> None:
    """Run a check, or another program, with the engines that FOLDLAKE_CHECK_ENGINE allows; its output goes to the task's log.

    execute: runs the operator's Spark job, with the arguments that it has then. program: as for `run_check_with_engines`. Raises
    AirflowException when the check has not passed.
    """

    def spark_job(given: list[str]) -> int:
        operator.application_args = given
        execute()
        return PASSED

    def log(line: str) -> None:
        operator.log.log(level_of(line)[0], "%s", line)

    status = run_check_with_engines(settings, arguments, spark_job, log, program)
    if status != PASSED:
        raise AirflowException(f"The {'comparison' if program else 'check'} ended with status {status}.")


def lake_task(
    task_id: str,
    job: str,
    arguments: Sequence[str] = (),
    *,
    operator_class: type[SparkJobOperator] = SparkJobOperator,
    **operator: Any,  # noqa: ANN401 - Airflow's
) -> SparkJobOperator:
    """Return a task that runs `spark_jobs/<job>.py` with the lake's Spark configuration; `arguments` may contain Jinja templates."""
    config = lake_config(Settings().lake)
    binary, connection = "spark-submit-lake", SPARK_LAKE_CONNECTION
    return _task(operator_class, task_id, job, arguments, binary, connection, config, operator)


def announce_lake_change(read_model: str = "") -> dict[str, Any]:
    """Return the operator arguments of a task that replaces `lake/<model>`; empty: for the read model in the run's form.

    The task emits an event of the table's asset, and one that starts a quality check.
    """
    alias = AssetAlias(LAKE_ALIAS)

    def announce(context: Context, _result: object = None) -> None:
        changed = read_model or context["params"]["read_model"]
        details = table_details(Settings(), changed)
        for asset in (lake_asset(changed), check_due_asset(changed)):
            context["outlet_events"][alias].add(Asset(asset), extra=details)

    return {"outlets": [alias], "post_execute": announce}


def stream_task(
    task_id: str,
    job: str,
    *,
    operator_class: type[SparkJobOperator] = SparkJobOperator,
    **operator: Any,  # noqa: ANN401 - Airflow's
) -> SparkJobOperator:
    """Return a task that runs `spark_jobs/<job>.py` with the stream driver's Spark configuration: both use one checkpoint format.

    On a cluster it uses one core for each partition of the largest source, in addition to the stream driver's cores.
    """
    settings = Settings()
    config = (
        stream_config(settings)
        | REPORT_SOON
        | {"spark.cores.max": str(max(source_partitions(settings.topics, settings.declaration_folders)))}
    )
    binary, connection = "spark-submit-catch-up", SPARK_STREAM_CONNECTION
    return _task(operator_class, task_id, job, (), binary, connection, config, operator)


def _task(  # noqa: PLR0913, PLR0917 - the parts of a task
    operator_class: type[SparkJobOperator],
    task_id: str,
    job: str,
    arguments: Sequence[str],
    binary: str,
    connection: str,
    config: dict[str, str],
    operator: dict[str, Any],
) -> SparkJobOperator:
    return operator_class(
        task_id=task_id,
        conn_id=connection,
        spark_binary=str(CHECKOUT / "stack" / "bin" / binary),
        application=str(CHECKOUT / "spark_jobs" / f"{job}.py"),
        application_args=list(arguments),
        name=f"foldlake-{task_id}",
        conf=config,
        # Nothing to reconnect to: in client mode the job ends with its task.
        durable=False,
        # Jobs share pools of one or two slots.
        weight_rule=RequestedFirst(),
        **operator,
    )
