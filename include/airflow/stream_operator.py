"""The Airflow operator that launches the stream driver through its supervisor, and ends when the driver does."""

import uuid
from typing import Any

from airflow.providers.common.compat.sdk import AirflowException
from airflow.sdk import BaseOperator

from include.airflow.driver_trigger import DriverTrigger
from include.settings import Settings
from include.stream import driver_launch, launch_failures
from include.stream.launch_alert import alert_if_due


class StreamOperator(BaseOperator):
    """Has the stream supervisor run spark_jobs/stream.py, and follows the driver until it ends; attaches to a driver that is already running.

    The task is deferred meanwhile. The stream supervisor brings a driver back that ends unexpectedly; the task fails when the driver fails again and
    again. The next launch then waits, up to FOLDLAKE_STREAM_LONGEST_RELAUNCH_DELAY_S, and one alert is logged and posted to the webhook.
    """

    def execute(self, context: Any) -> None:  # noqa: ANN401, ARG002 - Airflow's
        """Defer until the driver has ended; raises TaskDeferred."""
        home = Settings().home
        follower = uuid.uuid4().hex
        series = launch_failures.read(home)
        if series is None or launch_failures.is_launch_requested(home):
            # Here already, because the trigger starts a second or two later.
            launch_failures.clear_request(home)
            self.log.info("The stream driver is wanted: launch %s.", driver_launch.follow(home, follower))
        self.defer(trigger=DriverTrigger(follower), method_name=self.fail.__name__)

    def fail(self, context: Any, event: str) -> None:  # noqa: ANN401, ARG002 - Airflow's
        """Log the driver's last output, and raise AirflowException with its error; `event` is the launch id."""
        settings = Settings()
        report = driver_launch.ended_report(settings.home, event)
        if report is None:
            raise AirflowException(
                f"The launch {event} of the stream driver has failed; its report is gone, because another one was launched."
            )
        self.log.error("The last lines of the driver's output:\n%s", report.output)
        text = alert_if_due(settings.home, settings.quality.alert_webhook_url)
        if text is not None:
            self.log.error("%s", text)
        raise AirflowException(f"The stream driver has failed: {report.error}")
