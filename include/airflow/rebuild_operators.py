"""The Airflow operators of a plan's stages. Those that wait, for approval or for a time, occupy no worker."""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.exceptions import HITLRejectException, HITLTimeoutError
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.providers.standard.triggers.temporal import DateTimeTrigger
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from include.airflow.stage_execution import fail_without_retry, stage_run
from include.rebuild.stage import Action, DelayedAction

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


class OptionalApproval(ApprovalOperator):
    """Waits for approval if the form requires it; a rejection fails the task without retry, so that the candidate is abandoned.

    Airflow's scheduler may lose a response that arrives in the same second as the request; the next try requests approval again.
    """

    def __init__(self, **arguments: Any) -> None:  # noqa: ANN401 - Airflow's
        super().__init__(fail_on_reject=True, **arguments)

    def execute(self, context: Any) -> Any:  # noqa: ANN401 - Airflow's
        """Request approval if the form requires it."""
        if not context["params"]["approve"]:
            self.log.info("the form does not require approval")
            return None
        return super().execute(context)

    def execute_complete(self, context: Any, event: Any) -> Any:  # noqa: ANN401 - Airflow's
        """Process the response."""
        try:
            return super().execute_complete(context, event)
        except (HITLRejectException, HITLTimeoutError) as error:
            raise AirflowFailException(f"Not approved: {error}") from error
