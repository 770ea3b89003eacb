"""The Airflow operators of a plan's stages. Those that wait, for approval or for a time, occupy no worker."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.standard.exceptions import HITLRejectException, HITLTimeoutError
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.providers.standard.triggers.temporal import DateTimeTrigger
from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.exceptions import AirflowFailException

from include.airflow.stage_execution import fail_without_retry, stage_run
from include.rebuild.comparison.report import report_url
from include.rebuild.comparison.summary import with_exceeded
from include.rebuild.stage import Action, DelayedAction, StageRun
from include.settings import Settings

RECHECK_INTERVAL = timedelta(minutes=15)


class ActionOperator(BaseOperator):
    """Executes a stage's action and returns its result, which becomes the task's XCom."""

    def __init__(self, *, action: Action, **arguments: Any) -> None:  # noqa: ANN401 - Airflow's
        super().__init__(**arguments)
        self._action = action

    def execute(self, context: Any) -> Any:  # noqa: ANN401 - Airflow's
        """Execute the action."""
        with fail_without_retry():
            return self._action.run(stage_run(context))


class DelayedActionOperator(BaseOperator):
    """Waits in the triggerer until a stage's action is due, then executes it."""

    def __init__(self, *, action: DelayedAction, **arguments: Any) -> None:  # noqa: ANN401 - Airflow's
        super().__init__(**arguments)
        self._action = action

    def execute(self, context: Any) -> None:  # noqa: ANN401 - Airflow's
        """Execute the action if it is due, else wait."""
        self._execute_or_wait(context)

    def resume(self, context: Any, event: Any = None) -> None:  # noqa: ANN401, ARG002 - Airflow's
        """Continue after a wait: the due time may have changed, or the action may no longer be needed."""
        self._execute_or_wait(context)

    def _execute_or_wait(self, context: Any) -> None:  # noqa: ANN401 - Airflow's
        run = stage_run(context)
        with fail_without_retry():
            due_at = self._action.due_at(run)
        if due_at is None:
            self.log.info("nothing to do")
            return
        now = datetime.now(UTC)
        if due_at > now:
            self.log.info("due at %s", due_at)
            # Wait in steps: if someone performs the action manually, the run ends without waiting for the due time.
            trigger = DateTimeTrigger(moment=min(due_at, now + RECHECK_INTERVAL))
            self.defer(trigger=trigger, method_name="resume")
        with fail_without_retry():
            self._action.run(run)


class ChangesLink(BaseOperatorLink):
    """The task's button that opens the report of what changes, which a query node serves."""

    name = "Changes"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:  # noqa: ANN401, ARG002 - Airflow's
        """Return the URL of the report."""
        return report_url(Settings().reports_base_url, operator.comparison)


class CompareVersions(SparkSubmitOperator):
    """Runs spark_jobs/compare_versions.py with the given arguments; `comparison` is the comparison's id."""

    operator_extra_links = (ChangesLink(),)
    template_fields = (*SparkSubmitOperator.template_fields, "comparison")

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
