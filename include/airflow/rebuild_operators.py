"""The Airflow operators of a plan's stages. The one that waits for approval occupies no worker."""

from contextlib import nullcontext
from typing import Any

from airflow.providers.standard.exceptions import HITLRejectException, HITLTimeoutError
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from include.airflow.quality_operators import ReportLink, run_check_job
from include.airflow.spark_tasks import SparkJobOperator
from include.airflow.stage_execution import fail_without_retry, skip_refused_request, stage_run
from include.rebuild.comparison.report import report_url
from include.rebuild.comparison.summary import with_exceeded
from include.rebuild.stage import Action, Approval, SparkJob
from include.settings import Settings


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
        settings = Settings()
        try:
            link = run_check_job(
                settings.home,
                settings.reports_base_url,
                self.report_id,
                lambda: super(StageJob, self).execute(context),
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
    """Runs the comparison of a rebuild's version with the live one."""

    operator_extra_links = (ChangesLink(),)


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
