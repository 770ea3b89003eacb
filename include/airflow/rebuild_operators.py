"""The Airflow operators of a plan's stages. Those that wait, for a person or for a time, hold no worker meanwhile."""

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
    """Executes a stage's action; its result is the task's XCom."""

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
        """Continue after a wait. The time may have changed meanwhile, or the action be needless."""
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
            # In steps: once the action has been done by hand, the run ends without waiting for its time.
            trigger = DateTimeTrigger(moment=min(due_at, now + RECHECK_INTERVAL))
            self.defer(trigger=trigger, method_name="resume")
        with fail_without_retry():
            self._action.run(run)


class OptionalApproval(ApprovalOperator):
    """Waits for a person's yes if the form asks for it; a no fails the task without retry, so that the candidate is abandoned.

    Airflow's scheduler may lose an answer that arrives in the same second as the question; the task's next try asks again.
    """

    def __init__(self, **arguments: Any) -> None:  # noqa: ANN401 - Airflow's
        super().__init__(fail_on_reject=True, **arguments)

    def execute(self, context: Any) -> Any:  # noqa: ANN401 - Airflow's
        """Ask, unless the form asks for no approval."""
        if not context["params"]["approve"]:
            self.log.info("the form asks for no approval")
            return None
        return super().execute(context)

    def execute_complete(self, context: Any, event: Any) -> Any:  # noqa: ANN401 - Airflow's
        """Process the answer."""
        try:
            return super().execute_complete(context, event)
        except (HITLRejectException, HITLTimeoutError) as error:
            raise AirflowFailException(f"Not approved: {error}") from error
