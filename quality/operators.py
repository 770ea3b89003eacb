"""The Airflow task that checks one read model: says which check is due, runs the Spark job, links its report."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowException
from airflow.sdk import BaseOperatorLink
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from include.dag_defaults import COMPACTION_DAG, lake_asset
from include.lake import table_path
from include.settings import Settings
from quality.check import CheckRequest, CheckResult, Mode, StoreName
from quality.command import arguments
from quality.names import check_id
from quality.report import forget, report_url, summary_path
from quality.resting import rest_left_s

BOTH = (StoreName.LAKE, StoreName.NODES)
# Airflow's names of the kinds of runs.
ASSET_TRIGGERED, MANUAL, SCHEDULED = "asset_triggered", "manual", "scheduled"


class ReportLink(BaseOperatorLink):
    """The button on the task that opens its report, as a query node serves it."""

    name = "Report"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ANN401 - Airflow's
        """Return where the report of this run is."""
        return report_url(Settings(), check_id(ti_key.run_id, operator.read_model))


class CheckStores(SparkSubmitOperator):
    """Runs spark_jobs/quality.py for one read model: as the form says, after a compaction a sample, by the clock everything.

    A check that fails, fails the task for good. A check that could not be made is tried again.
    """

    operator_extra_links = (ReportLink(),)

    def __init__(self, *, read_model: str, **operator: Any) -> None:  # noqa: ANN401 - Airflow's
        super().__init__(**operator)
        self.read_model = read_model

    def execute(self, context: Any) -> None:  # noqa: ANN401 - Airflow's
        """Run the check that is due."""
        run = context["dag_run"]
        run_type = kind_of(run.run_type)
        due = due_check(self.read_model, run_type, context["params"], _assets(context))
        if due is None:
            raise AirflowSkipException(f"This run is not about {self.read_model}.")
        mode, stores = due
        name = check_id(run.run_id, self.read_model)
        settings = Settings()
        if run_type == SCHEDULED and not _has_lake(settings, self.read_model):
            raise AirflowSkipException(
                "Nothing has been compacted yet: the first compaction is followed by a check."
            )
        if run_type == ASSET_TRIGGERED and _only_compacted(context):
            left_s = rest_left_s(settings, self.read_model, time.time())
            if left_s:
                raise AirflowSkipException(
                    f"The last check was a long one for checks to follow every compaction: they rest for {left_s:.0f} s yet."
                )
        self.application_args = arguments(CheckRequest(self.read_model, stores, mode, name))
        forget(settings, name)
        try:
            super().execute(context)
        except AirflowException as error:
            verdict = verdict_of(settings, name)
            if verdict is None:
                raise
            raise AirflowFailException(f"{verdict}. Report: {report_url(settings, name)}") from error
        self.log.info("report: %s", report_url(settings, name))


def due_check(
    read_model: str, run_type: str, params: Mapping[str, Any], assets: Sequence[str]
) -> tuple[Mode, tuple[StoreName, ...]] | None:
    """Return the mode and the stores of the check that a run makes of a read model; None when it makes none."""
    if run_type == ASSET_TRIGGERED:
        return (Mode.SAMPLE, BOTH) if lake_asset(read_model) in assets else None
    if run_type == MANUAL:
        if params["read_model"] != read_model:
            return None
        return Mode(params["mode"]), tuple(StoreName(store) for store in params["stores"])
    return Mode.FULL, BOTH


def kind_of(run_type: object) -> str:
    """Return the name of a kind of runs: Airflow gives an enumeration's member."""
    return str(getattr(run_type, "value", run_type))


def verdict_of(settings: Settings, name: str) -> str | None:
    """Return what a check came to, or None when it came to nothing."""
    try:
        return str(CheckResult.read(summary_path(settings, name).read_text(encoding="utf-8"))["verdict"])
    except (OSError, ValueError, KeyError):
        return None


def _has_lake(settings: Settings, read_model: str) -> bool:
    from deltalake import DeltaTable  # noqa: PLC0415 - not when DAGs are parsed

    return bool(DeltaTable.is_deltatable(table_path(settings, read_model)))


def _only_compacted(context: Any) -> bool:  # noqa: ANN401 - Airflow's
    """Return whether compactions alone began the run: a promotion or a rollback is always checked."""
    events = context.get("triggering_asset_events") or {}
    return all(event.source_dag_id == COMPACTION_DAG for asset in events for event in events[asset])


def _assets(context: Any) -> list[str]:  # noqa: ANN401 - Airflow's
    return [asset.name for asset in context.get("triggering_asset_events") or {}]
