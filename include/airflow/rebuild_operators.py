"""The Airflow operators of a plan's stages. The one that waits for approval occupies no worker."""

from contextlib import nullcontext
from typing import Any

from airflow.providers.standard.exceptions import HITLRejectException, HITLTimeoutError
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from include.airflow.stage_execution import fail_without_retry, skip_refused_request, stage_run
from include.rebuild.stage import Action


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
