"""The Airflow operators of a plan's stages: they build a stage's StageRun, execute it, and map its errors to Airflow's.

The operator that waits for approval occupies no worker.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from airflow.providers.standard.exceptions import HITLRejectException, HITLTimeoutError
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from include.airflow.client import AirflowUnavailableError, airflow_api
from include.airflow.names import REFUSED
from include.airflow.quality_operators import ReportLink, run_check_job
from include.airflow.spark_tasks import SparkJobOperator, check_with_engines
from include.errors import FoldlakeError, KafkaUnavailableError, RegistryUnavailableError
from include.quality.check_engines import COMPARISON
from include.rebuild.comparison.report import report_url
from include.rebuild.comparison.summary import with_exceeded
from include.rebuild.errors import (
    CleanUpIncompleteError,
    NoSlotsError,
    NothingToDoError,
    RequestError,
    StageTimeoutError,
    StaleRequestError,
)
from include.rebuild.stage import Action, Approval, SparkJob, StageRun
from include.settings import Settings
from include.versions.start_rule import StartRuleError
from include.versions.transitions import RunAbandonedError, VersionChangeError
from include.versions.version_lock import VersionLockedError

LOG = logging.getLogger(__name__)
# A retry may succeed: the server may be up again, the lock released. Any other Foldlake error would recur.
RETRYABLE_ERRORS = (
    KafkaUnavailableError,
    RegistryUnavailableError,
    VersionLockedError,
    StageTimeoutError,
    CleanUpIncompleteError,
)
# A request that the registry's state or the declarations do not allow.
REFUSALS = (RequestError, NoSlotsError, StaleRequestError, StartRuleError, VersionChangeError)


@contextmanager
def fail_without_retry() -> Iterator[None]:
    """Map errors to Airflow's: fail the task without retry when a retry cannot succeed, skip it when there is nothing to do."""
    try:
        yield
    except RETRYABLE_ERRORS:
        raise
    except NothingToDoError as reason:
        raise AirflowSkipException(str(reason)) from None
    except FoldlakeError as error:
        LOG.error("%s", error)  # noqa: TRY400 - its message is complete
        raise AirflowFailException(str(error)) from None


@contextmanager
def skip_refused_request(set_note: Callable[[str], None]) -> Iterator[None]:
    """Skip the task, and with it those that follow, if the run's request is refused; `set_note` gets the reason.

    A run that was refused is no failure: it has changed nothing, and must not look like one that has failed.
    """
    try:
        yield
    except RunAbandonedError:
        # Not the request: this run was ended, and somebody has cleared its task.
        raise
    except REFUSALS as reason:
        LOG.warning("%s%s", REFUSED, reason)
        set_note(f"{REFUSED}{reason}")
        raise AirflowSkipException(f"{REFUSED}{reason}") from None


def stage_run(context: Any, read_models: tuple[str, ...]) -> StageRun:  # noqa: ANN401 - Airflow's
    """Return the run as a stage sees it, from the task's context. read_models: those of the stage; empty for the one in the form."""
    settings, dag_run, task_instance = Settings(), context["dag_run"], context["ti"]

    def set_note(text: str) -> None:
        try:
            airflow_api(settings.home, settings.airflow).set_note(dag_run.dag_id, dag_run.run_id, text)
        except (AirflowUnavailableError, OSError, ValueError, KeyError) as error:
            # The run does not depend on its note.
            LOG.warning("cannot set the run's note: %s", error)

    return StageRun(
        settings=settings,
        run_id=dag_run.run_id,
        read_models=read_models or (str(context["params"]["read_model"]),),
        form=context["params"],
        sent=dag_run.conf or {},
        requested_at=dag_run.run_after,
        set_note=set_note,
        result_of=lambda task_id: task_instance.xcom_pull(task_ids=task_id),
    )


class ActionOperator(BaseOperator):
    """Executes a stage's action and returns its result, which becomes the task's XCom."""

    def __init__(self, *, action: Action, read_models: tuple[str, ...], **arguments: Any) -> None:  # noqa: ANN401 - Airflow's
        super().__init__(**arguments)
        self._action, self._read_models = action, read_models

    def execute(self, context: Any) -> Any:  # noqa: ANN401 - Airflow's
        """Execute the action."""
        run = stage_run(context, self._read_models)
        refusal = skip_refused_request(run.set_note) if self._action.checks_request else nullcontext()
        with fail_without_retry(), refusal:
            return self._action.run(run)


class StageJob(SparkJobOperator):
    """Runs a stage's Spark job, with the arguments that its run determines."""

    report_id = ""

    def __init__(self, *, stage_job: SparkJob, read_models: tuple[str, ...], **operator: Any) -> None:  # noqa: ANN401 - Airflow's
        super().__init__(**operator)
        self._stage_job, self._read_models = stage_job, read_models

    def execute(self, context: Any) -> None:  # noqa: ANN401 - Airflow's
        """Run the job."""
        self.take_arguments(context)
        super().execute(context)

    def take_arguments(self, context: Any) -> None:  # noqa: ANN401 - Airflow's
        """Take the arguments, and the id of the report if there is one, from the run."""
        with fail_without_retry():
            run = stage_run(context, self._read_models)
            self.application_args = list(self._stage_job.arguments(run))
            if self._stage_job.report is not None:
                self.report_id = run.report_id


class VerifyVersion(StageJob):
    """Runs the quality check of a rebuild's version.

    An unverified candidate is not promoted: a check that fails, or that can never run, fails the task without retry.
    """

    operator_extra_links = (ReportLink(),)

    def check_of(self, _run_id: str) -> str:
        """Return the id of the check, which depends on the version and not on the run."""
        return self.report_id

    def execute(self, context: Any) -> None:  # noqa: ANN401 - Airflow's
        """Run the check."""
        self.take_arguments(context)
        settings, arguments = Settings(), list(self.application_args or ())
        try:
            link = run_check_job(
                settings.home,
                settings.reports_base_url,
                self.report_id,
                lambda: check_with_engines(
                    self, settings, arguments, lambda: super(StageJob, self).execute(context)
                ),
            )
        except AirflowSkipException as error:
            raise AirflowFailException(
                f"The candidate cannot be verified and is not promoted: {error}"
            ) from error
        self.log.info("report: %s", link)


class ChangesLink(BaseOperatorLink):
    """The task's button that opens the report of what changes, which a query node serves."""

    name = "Changes"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ANN401, ARG002 - Airflow's
        """Return the URL of the report."""
        return report_url(Settings().reports_base_url, operator.report_id)


class CompareVersions(StageJob):
    """Runs the comparison of a rebuild's version with the live one, with Spark's job if DuckDB cannot."""

    operator_extra_links = (ChangesLink(),)

    def execute(self, context: Any) -> None:  # noqa: ANN401 - Airflow's
        """Run the comparison."""
        self.take_arguments(context)
        arguments = list(self.application_args or ())
        check_with_engines(
            self, Settings(), arguments, lambda: super(StageJob, self).execute(context), COMPARISON
        )


class OptionalApproval(ApprovalOperator):
    """Waits for approval if the form requires it, or what changes exceeds its thresholds.

    A rejection fails the task without retry, so that the candidate is abandoned.

    Airflow's scheduler may lose a response that arrives in the same second as the request; the next try requests approval again.
    """

    def __init__(self, *, approval: Approval, read_models: tuple[str, ...], **arguments: Any) -> None:  # noqa: ANN401 - Airflow's
        # The run determines the question.
        super().__init__(
            subject="Promote?", response_timeout=approval.timeout, fail_on_reject=True, **arguments
        )
        self._approval, self._read_models = approval, read_models

    def execute(self, context: Any) -> Any:  # noqa: ANN401 - Airflow's
        """Request approval if the form requires it, or a threshold is exceeded."""
        with fail_without_retry():
            run = stage_run(context, self._read_models)
            exceeded = self._approval.exceeded(run)
            if not exceeded and not run.form["approve"]:
                self.log.info("the form does not require approval, and no threshold is exceeded")
                return None
            question = self._approval.question(run)
        for sentence in exceeded:
            self.log.warning("threshold exceeded: %s", sentence)
        self.subject, self.body = question.subject, with_exceeded(question.body, exceeded)
        return super().execute(context)

    def execute_complete(self, context: Any, event: Any) -> Any:  # noqa: ANN401 - Airflow's
        """Process the response."""
        try:
            return super().execute_complete(context, event)
        except (HITLRejectException, HITLTimeoutError) as error:
            raise AirflowFailException(f"Not approved: {error}") from error
