"""The Airflow tasks of a rebuild that wait without holding a worker: for a person, and for the end of the grace time."""

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.exceptions import HITLRejectException, HITLTimeoutError
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.providers.standard.triggers.temporal import DateTimeTrigger
from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from include.settings import Settings

LOOK_AGAIN = timedelta(minutes=15)


class ApprovalIfAsked(ApprovalOperator):
    """Waits for a person's yes where the form asks for it; a no fails the task for good, so that the candidate is abandoned.

    An answer within the second in which the question is asked may find Airflow's scheduler still busy with the asking: it
    takes the task for lost, and the task's next try asks again.
    """

    def __init__(self, **arguments: Any) -> None:  # noqa: ANN401 - Airflow's
        super().__init__(fail_on_reject=True, **arguments)

    def execute(self, context: Any) -> Any:  # noqa: ANN401
        """Ask, or go on."""
        if not context["params"]["approve"]:
            self.log.info("promoted when proved: nobody is asked")
            return None
        return super().execute(context)

    def execute_complete(self, context: Any, event: Any) -> Any:  # noqa: ANN401
        """Take in the answer."""
        try:
            return super().execute_complete(context, event)
        except (HITLRejectException, HITLTimeoutError) as error:
            raise AirflowFailException(f"Not approved: {error}") from error


class RetireAfterGrace(BaseOperator):
    """Retires the version that a promotion replaced, once its grace time is over; does nothing where it is live again."""

    template_fields = ("read_model", "version")

    def __init__(self, *, read_model: str, version: str, **arguments: Any) -> None:  # noqa: ANN401
        super().__init__(**arguments)
        self.read_model = read_model
        self.version = version

    def execute(self, context: Any) -> None:  # noqa: ANN401, ARG002
        """Wait in the triggerer until the time that the registry names has come, then retire."""
        self._retire_or_wait()

    def resume(self, context: Any, event: Any = None) -> None:  # noqa: ANN401, ARG002
        """Go on after the wait; the version may have been live meanwhile, and be kept for longer."""
        self._retire_or_wait()

    def _retire_or_wait(self) -> None:
        from include.rebuild.retirement import previous_version, retire_version  # noqa: PLC0415 - not when DAGs are parsed

        if not self.version:
            self.log.info("nothing was replaced")
            return
        settings = Settings()
        number = int(self.version)
        version = previous_version(settings, self.read_model, number)
        if version is None:
            self.log.info("v%d of %s is live again, or retired already", number, self.read_model)
            return
        moment = datetime.fromisoformat(version.retire_after)
        now = datetime.now(UTC)
        if moment > now:
            self.log.info("v%d of %s is kept for a rollback until %s", number, self.read_model, moment)
            # Looks again now and then: it may be retired by hand before its time, and then this run is over.
            self.defer(trigger=DateTimeTrigger(moment=min(moment, now + LOOK_AGAIN)), method_name="resume")
        retire_version(settings, self.read_model, number)
