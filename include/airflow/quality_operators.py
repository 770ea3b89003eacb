"""The Airflow operators of quality checks: they run a check, link its report, and turn its verdict into the task's state."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow.providers.common.compat.sdk import AirflowException
from airflow.sdk import Asset, BaseOperator, BaseOperatorLink
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from include.airflow.names import COMPACTION_DAG, check_due_asset, lake_asset, quality_asset
from include.airflow.run_hooks import postpone_after_start
from include.airflow.spark_tasks import SparkJobOperator, check_with_engines, prioritized
from include.airflow.web import check_details, event_table_details, note_verdict
from include.declarations.event_table import AppendedTable
from include.declarations.load import read_model
from include.declarations.read_model import ReadModel
from include.files import file_lock, is_locked
from include.lake.tables import table_path
from include.quality.check import CheckRequest, CheckResult, Mode, StoreName, check_id, job_arguments
from include.quality.check_throttle import last_check_text, pause_left_s
from include.quality.report import Outcome, Verdict, remove, report_url, summary_path, verdict_of
from include.quality.verified_stores import SERVED, confirm_if_nothing_is_new
from include.settings import Settings
from include.webhook import post_alert

# A check that has ended releases its lock at once.
LOCK_WAIT_S = 5.0
# Airflow's names of the kinds of runs.
ASSET_TRIGGERED, MANUAL, SCHEDULED = "asset_triggered", "manual", "scheduled"


class ReportLink(BaseOperatorLink):
    """The task's button that opens the report, which a query node serves."""

    name = "Report"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ANN401 - Airflow's
        """Return the URL of the report."""
        return report_url(Settings().reports_base_url, operator.check_of(ti_key.run_id))


class CheckStores(SparkJobOperator):
    """Checks one read model, with Spark's job if DuckDB cannot: as the form specifies, incrementally or on a sample after a compaction, on all keys daily.

    A failed check fails the task without retry. A check that could not run is retried; one that can never run is skipped.
    """

    operator_extra_links = (ReportLink(),)

    def __init__(self, *, read_model: str, **operator: Any) -> None:  # noqa: ANN401 - Airflow's
        super().__init__(**operator)
        self.read_model = read_model

    def check_of(self, run_id: str) -> str:
        """Return the id of the check that a run of the DAG runs."""
        return check_id(run_id, self.read_model)

    def execute(self, context: Any) -> None:  # noqa: ANN401 - Airflow's
        """Run the check that is due for this run."""
        run = context["dag_run"]
        run_type = kind_of(run.run_type)
        settings = Settings()
        model = read_model(self.read_model, settings.declaration_folders)
        due = due_check(model, run_type, context["params"], _assets(context))
        if due is None:
            raise AirflowSkipException(f"This run is not for {self.read_model}.")
        postpone_after_start(str(run.run_id), settings.airflow.start_delay_s)
        mode, stores = due
        if run_type != MANUAL and not has_lake(settings.lake_root, self.read_model):
            raise AirflowSkipException(
                f"{self.read_model} has no table in the lake yet: the first check follows the compaction that creates it."
            )
        if run_type == ASSET_TRIGGERED and _only_compacted(context):
            # Of another check that has run since this one was offered.
            left_s = pause_left_s(settings.home, self.read_model, time.time(), mode)
            if left_s:
                raise AirflowSkipException(
                    f"Not checked: the last check of {self.read_model} took long, and the next one after a compaction may begin in "
                    f"{left_s:.0f} s. {last_check_text(settings.home, self.read_model)}"
                )
        name = self.check_of(run.run_id)
        arguments = job_arguments(
            CheckRequest(self.read_model, stores, mode, name, from_log=is_from_log(context))
        )
        try:
            with file_lock(check_lock(settings, self.read_model), wait_s=LOCK_WAIT_S):
                link = run_check_job(
                    settings.home,
                    settings.reports_base_url,
                    name,
                    lambda: check_with_engines(
                        self,
                        prioritized(settings, run),
                        arguments,
                        lambda: super(CheckStores, self).execute(context),
                    ),
                )
        finally:
            self._show_verdict(context, settings, name)
        self.log.info("report: %s", link)

    def _show_verdict(self, context: Any, settings: Settings, name: str) -> None:  # noqa: ANN401 - Airflow's
        """Put the verdict into the run's note, and the details of a check that passed into the event of its asset."""
        verdict = verdict_of(settings.home, name)
        if verdict is None:
            return
        note_verdict(settings, context["dag_run"], self.read_model, name, verdict)
        if verdict.outcome is Outcome.PASSED:
            result = CheckResult.read(summary_path(settings.home, name).read_text(encoding="utf-8"))
            context["outlet_events"][Asset(quality_asset(self.read_model))].extra = check_details(result)


class CheckEventTables(BaseOperator):
    """Checks that event tables have each event of the log once, with its values: after each append, daily from the log, and as the form specifies.

    group: the name of their asset; that of the table, if there is one. A failed check fails the task without retry, and is posted to the
    webhook.
    """

    def __init__(self, *, tables: Sequence[AppendedTable], group: str, **operator: Any) -> None:  # noqa: ANN401 - Airflow's
        super().__init__(**operator)
        self._tables, self._group = tuple(tables), group

    def execute(self, context: Any) -> None:  # noqa: ANN401 - Airflow's
        """Check the tables for which this run is."""
        # Not when DAGs are parsed.
        from include.lake.event_table_check import EventTableMissingError, check_event_table  # noqa: PLC0415
        from include.replay.table_proof import compare_with_log  # noqa: PLC0415

        settings = Settings()
        postpone_after_start(str(context["dag_run"].run_id), settings.airflow.start_delay_s)
        # Once a day, so that a change of the log is noticed, too.
        from_log = is_from_log(context) or kind_of(context["dag_run"].run_type) == SCHEDULED
        checked: dict[str, dict[str, int]] = {}
        missing, failures = "", []
        for table in self._due(context):
            try:
                check = check_event_table(settings.lake_root, table)
                comparison = compare_with_log(settings, table, from_log=from_log)
            except EventTableMissingError as error:
                missing = str(error)
                continue
            checked[table.name] = event_table_details(check, comparison)
            for found in (check, comparison):
                self.log.info("lake/%s: %s", table.name, found)
                if not found.is_exact:
                    failures.append(f"The check of event table {table.name} failed: {found}.")
        for text in failures:
            post_alert(settings.quality.alert_webhook_url, {"text": text, "event_table": self._group})
        if failures:
            raise AirflowFailException(f"{' '.join(failures)} docs/lake.md shows how to build it again.")
        if not checked:
            raise AirflowSkipException(missing or f"This run is not for {self._group}.")
        context["outlet_events"][Asset(quality_asset(self._group))].extra = checked

    def _due(self, context: Any) -> list[AppendedTable]:  # noqa: ANN401 - Airflow's
        match kind_of(context["dag_run"].run_type):
            case "manual":
                return [table for table in self._tables if table.name == context["params"]["read_model"]]
            case "asset_triggered":
                changed = [asset.name for asset in context.get("triggering_asset_events") or {}]
                return list(self._tables) if lake_asset(self._group) in changed else []
            case _:
                return list(self._tables)


def is_from_log(context: Any) -> bool:  # noqa: ANN401 - Airflow's
    """Return whether a run was requested that reads all events from the log."""
    return kind_of(context["dag_run"].run_type) == MANUAL and bool(context["params"].get("from_log"))


def run_check_job(home: Path, reports_base_url: str, name: str, job: Callable[[], object]) -> str:
    """Run a check's job and return the URL of its report, if the check passed.

    Raises AirflowFailException when the check failed, since a retry would fail again; AirflowSkipException when the read
    model cannot be checked. Without a verdict, or when the job failed after the check had passed, raises the job's own error,
    which Airflow retries.
    """
    remove(home, name)
    try:
        job()
    except AirflowException as error:
        verdict = verdict_of(home, name)
        match verdict:
            case Verdict(Outcome.FAILED, summary):
                raise AirflowFailException(
                    f"{summary}. Report: {report_url(reports_base_url, name)}"
                ) from error
            case Verdict(Outcome.UNCHECKABLE, reason):
                raise AirflowSkipException(reason) from error
            case _:
                raise
    return report_url(reports_base_url, name)


def due_check(
    model: ReadModel, run_type: str, params: Mapping[str, Any], assets: Sequence[str]
) -> tuple[Mode, tuple[StoreName, ...]] | None:
    """Return the mode and the stores with which a run checks a read model; None when the run does not check it."""
    if run_type == ASSET_TRIGGERED:
        return (mode_after_change(model), SERVED) if check_due_asset(model.name) in assets else None
    if run_type == MANUAL:
        if params["read_model"] != model.name:
            return None
        return Mode(params["mode"]), tuple(StoreName(store) for store in params["stores"])
    return Mode.FULL, SERVED


def mode_after_change(model: ReadModel) -> Mode:
    """Return the mode of the checks that follow changes of a read model's table."""
    return Mode.INCREMENTAL if model.merge(model.newest_fold_revision) is not None else Mode.SAMPLE


def check_lock(settings: Settings, read_model: str) -> Path:
    """Return the file that is locked while a run of the DAG checks a read model."""
    return settings.home / "run" / f"check-{read_model}.lock"


def kind_of(run_type: object) -> str:
    """Return the name of a run type, which Airflow passes as an enum member."""
    return str(getattr(run_type, "value", run_type))


def has_lake(lake_root: str, read_model: str) -> bool:
    """Return whether there is a table yet: a compaction before the first live version creates none."""
    from deltalake import DeltaTable  # noqa: PLC0415 - not when DAGs are parsed

    return bool(DeltaTable.is_deltatable(table_path(lake_root, read_model)))


def _only_compacted(context: Any) -> bool:  # noqa: ANN401 - Airflow's
    """Return whether only compactions triggered the run: a promotion or a rollback is always checked."""
    events = context.get("triggering_asset_events") or {}
    return all(event.source_dag_id == COMPACTION_DAG for asset in events for event in events[asset])


def _assets(context: Any) -> list[str]:  # noqa: ANN401 - Airflow's
    return [asset.name for asset in context.get("triggering_asset_events") or {}]


class TriggerCheckIfDue(BaseOperator):
    """Emits an event of the asset that starts a check. Skipped if nothing is to be verified, or the last check took long."""

    def __init__(self, *, read_model: str, **operator: Any) -> None:  # noqa: ANN401 - Airflow's
        super().__init__(outlets=[Asset(check_due_asset(read_model))], **operator)
        self.read_model = read_model

    def execute(self, context: Any) -> None:  # noqa: ANN401, ARG002 - Airflow's
        """Return if a check is due; else raise AirflowSkipException with the reason, and with the time of the last check."""
        settings = Settings()
        model = read_model(self.read_model, settings.declaration_folders)
        reason = skip_reason(settings, model, time.time())
        if reason is not None:
            raise AirflowSkipException(
                f"No check follows: {reason} {last_check_text(settings.home, model.name)}"
            )
        self.log.info("%s: a check of %s follows", model.name, ", ".join(SERVED))


def skip_reason(settings: Settings, model: ReadModel, now_s: float) -> str | None:
    """Return why no check of a read model is due after a compaction; None if one is.

    If nothing is new since the last one, it is published that lake and nodes are still verified up to the end of the log.
    """
    mode = mode_after_change(model)
    if mode is Mode.INCREMENTAL and confirm_if_nothing_is_new(settings, model):
        return f"{model.name} has no event since its last check, and its table is unchanged."
    if is_locked(check_lock(settings, model.name)):
        return f"a check of {model.name} is running."
    left_s = pause_left_s(settings.home, model.name, now_s, mode)
    if left_s:
        return f"the last check of {model.name} took long, and the next one may begin in {left_s:.0f} s."
    return None
