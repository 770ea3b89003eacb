"""Airflow tasks that run a Spark job and end when it ends."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Asset, AssetAlias, Context
from airflow.sdk.exceptions import AirflowSkipException

from include.airflow.names import (
    LAKE_ALIAS,
    SPARK_LAKE_CONNECTION,
    SPARK_STREAM_CONNECTION,
    check_due_asset,
    lake_asset,
)
from include.airflow.quality_operators import SCHEDULED, confirm_if_nothing_is_new, kind_of
from include.airflow.web.asset_details import table_details
from include.declarations.event_table import AppendedTable
from include.declarations.read_model import ReadModel
from include.settings import CHECKOUT, Settings
from include.spark.lake_config import lake_config
from include.spark.stream_config import source_partitions, stream_config


def lake_task(
    task_id: str,
    job: str,
    arguments: list[str],
    *,
    operator_class: type[SparkSubmitOperator] = SparkSubmitOperator,
    **operator: Any,  # noqa: ANN401 - Airflow's
) -> SparkSubmitOperator:
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


def stream_task(task_id: str, job: str, arguments: list[str], **operator: Any) -> SparkSubmitOperator:  # noqa: ANN401 - Airflow's
    """Return a task that runs `spark_jobs/<job>.py` with the stream driver's Spark configuration: both use one checkpoint format.

    On a cluster it uses one core for each partition of the largest source, in addition to the stream driver's cores.
    """
    settings = Settings()
    config = stream_config(settings) | {
        "spark.cores.max": str(max(source_partitions(settings.topics, settings.declaration_folders)))
    }
    binary, connection = "spark-submit-catch-up", SPARK_STREAM_CONNECTION
    return _task(SparkSubmitOperator, task_id, job, arguments, binary, connection, config, operator)


def skip_if_compacted(read_model: ReadModel, everything: str) -> Callable[[Context], None]:
    """Return a `pre_execute` that skips a compaction which has nothing to do.

    That is the case if the run's parameter `read_model` names another read model, and if a scheduled run finds the table complete: a
    session of Spark would take seconds of processor time to find that out.

    everything: the parameter's value that means all read models.
    """

    def skip(context: Context) -> None:
        from include.lake.pending_work import has_pending_work  # noqa: PLC0415 - not when DAGs are parsed

        is_scheduled = _require_requested(context, {read_model.name}, everything)
        settings = Settings()
        if is_scheduled and not has_pending_work(settings, read_model):
            # No check follows a run that is skipped: what was verified is still up to date.
            confirm_if_nothing_is_new(settings, read_model)
            raise AirflowSkipException(
                f"lake/{read_model.name} contains every event: the changelog has nothing new, and VACUUM is not due."
            )

    return skip


def skip_if_appended(
    tables: Iterable[AppendedTable], everything: str, name: str
) -> Callable[[Context], None]:
    """Return a `pre_execute` that skips the job of event tables in the same cases as `skip_if_compacted`.

    name: what the run's parameter names all of these tables; it may also name one of them.
    """
    tables = tuple(tables)

    def skip(context: Context) -> None:
        from include.lake.event_table_status import has_records_to_append  # noqa: PLC0415 - not when DAGs are parsed

        names = {name, *(table.name for table in tables)}
        if _require_requested(context, names, everything) and not any(
            has_records_to_append(Settings(), table) for table in tables
        ):
            topics = ", ".join(table.source_topic for table in tables)
            raise AirflowSkipException(
                f"lake/{name} contains every event of {topics}, and VACUUM is not due."
            )

    return skip


def _require_requested(context: Context, names: Collection[str], everything: str) -> bool:
    """Return whether a run was scheduled; raises AirflowSkipException if it is for another table."""
    requested = context["params"]["read_model"]
    if requested not in {everything, *names}:
        raise AirflowSkipException(f"This run is for {requested}.")
    return kind_of(context["dag_run"].run_type) == SCHEDULED


def _task(  # noqa: PLR0913, PLR0917 - the parts of a task
    operator_class: type[SparkSubmitOperator],
    task_id: str,
    job: str,
    arguments: list[str],
    binary: str,
    connection: str,
    config: dict[str, str],
    operator: dict[str, Any],
) -> SparkSubmitOperator:
    return operator_class(
        task_id=task_id,
        conn_id=connection,
        spark_binary=str(CHECKOUT / "stack" / "bin" / binary),
        application=str(CHECKOUT / "spark_jobs" / f"{job}.py"),
        application_args=arguments,
        name=f"foldlake-{task_id}",
        conf=config,
        # Nothing to reconnect to: in client mode the job ends with its task.
        durable=False,
        **operator,
    )
