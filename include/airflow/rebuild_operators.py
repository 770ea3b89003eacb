"""The Airflow operators of a plan's stages. The one that waits for approval occupies no worker."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from airflow.providers.standard.exceptions import HITLRejectException, HITLTimeoutError
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.exceptions import AirflowFailException

from include.airflow.spark_tasks import SparkJobOperator
from include.airflow.stage_execution import fail_without_retry, skip_refused_request, stage_run
from include.rebuild.comparison.report import report_url
from include.rebuild.comparison.summary import with_exceeded
from include.rebuild.stage import Action, StageRun
from include.settings import Settings


class ActionOperator(BaseOperator):
    """Executes a stage's action and returns its result, which becomes the task's XCom."""

    def __init__(self, *, action: Action, **arguments: Any) -> None:  # noqa: ANN401 - Airflow's
        super().__init__(**arguments)
        self._action = action

    def execute(self, context: Any) -> Any:  # noqa: ANN401 - Airflow's
        """Execute the action."""
        run = stage_run(context)
        refusal = skip_refused_request(run.set_note) if self._action.checks_request else nullcontext()
        with fail_without_retry(), refusal:
            return self._action.run(run)


class ChangesLink(BaseOperatorLink):
    """The task's button that opens the report of what changes, which a query node serves."""

    name = "Changes"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ANN401, ARG002 - Airflow's
        """Return the URL of the report."""
        return report_url(Settings().reports_base_url, operator.comparison)


class CompareVersions(SparkJobOperator):
    """Runs spark_jobs/compare_versions.py with the given arguments; `comparison` is the comparison's id."""

    operator_extra_links = (ChangesLink(),)
    template_fields = (*SparkJobOperator.template_fields, "comparison")

    def __init__(self, *, comparison: str, **operator: Any) -> None:  # noqa: ANN401 - Airflow's
        super().__init__(**operator)
        self.comparison = comparison


class OptionalApproval(ApprovalOperator):
    """Waits for approval if the form requires it, or what changes exceeds its thresholds.

    A rejection fails the task without retry, so that the candidate is abandoned.

    Airflow's scheduler may lose a response that arrives in the same second as the request; the next try requests approval again.
    """

    def __init__(self, *, exceeded: Callable[[StageRun], Sequence[str]], **arguments: Any) -> None:  # noqa: ANN401 - Airflow's
        super().__init__(fail_on_reject=True, **arguments)
        self._exceeded = exceeded

    def execute(self, context: Any) -> Any:  # noqa: ANN401 - Airflow's
        """Request approval if the form requires it, or a threshold is exceeded."""
        with fail_without_retry():
            exceeded = self._exceeded(stage_run(context))
        if not exceeded and not context["params"]["approve"]:
            self.log.info("the form does not require approval, and no threshold is exceeded")
            return None
        for sentence in exceeded:
            self.log.warning("threshold exceeded: %s", sentence)
        self.body = with_exceeded(self.body or "", exceeded)
        return super().execute(context)

    def execute_complete(self, context: Any, event: Any) -> Any:  # noqa: ANN401 - Airflow's
        """Process the response."""
        try:
            return super().execute_complete(context, event)
        except (HITLRejectException, HITLTimeoutError) as error:
            raise AirflowFailException(f"Not approved: {error}") from error
