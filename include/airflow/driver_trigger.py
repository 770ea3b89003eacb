"""How the DAG `stream` runs the stream driver: the operator, and the trigger that requests the next launch and follows the driver until it ends.

The trigger runs in Airflow's triggerer and holds no task slot. It keeps nothing in memory: after a restart of any part of Airflow, it
continues with the driver that has been running meanwhile.
"""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from airflow.providers.common.compat.sdk import AirflowException
from airflow.sdk import BaseOperator
from airflow.triggers.base import BaseTrigger, TaskSuccessEvent, TriggerEvent

from include.settings import Settings
from include.stream import driver_launch, launch_failures
from include.stream.driver_launch import LaunchReport
from include.stream.launch_failures import alert_if_due

POLL_INTERVAL_S = 0.5
# A stream supervisor launches a driver within a second of the request.
SUPERVISOR_WARNING_S = 30.0
NO_SUPERVISOR = (
    "The stream driver's supervisor has not responded for %.0f s: the driver may not be running. Hint: `./foldlake status` shows whether the "
    "process stream-supervisor runs, and `./foldlake up` starts it."
)


class DriverTrigger(BaseTrigger):
    """Follows the stream driver on behalf of one task; `follower` identifies the task."""

    def __init__(self, follower: str) -> None:
        """Follow the driver for this task."""
        super().__init__()  # type: ignore[no-untyped-call]  # of Airflow
        self.follower = follower

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and its arguments."""
        return f"{type(self).__module__}.{type(self).__name__}", {"follower": self.follower}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yield one event: success when the driver was stopped, else the launch id, whose report has the error."""
        settings = Settings()
        home = settings.home
        if not driver_launch.is_following(home, self.follower):
            await self._wait_until_due(settings)
            launch_failures.clear_request(home)
        launch_id = driver_launch.follow(home, self.follower)
        self.log.info("Following the stream driver, launch %s.", launch_id)
        warn_at_s = time.monotonic() + SUPERVISOR_WARNING_S
        relaunches = 0
        while True:
            ended = driver_launch.ended_report(home, launch_id)
            if ended is not None:
                yield self._end_of(ended)
                return
            if not driver_launch.is_following(home, self.follower):
                self.log.warning("Another task follows the stream driver by now.")
                yield TaskSuccessEvent()
                return
            report = driver_launch.read_report(home)
            if report is not None and report.launch_id == launch_id:
                warn_at_s = float("inf")
                if report.relaunches != relaunches:
                    relaunches = report.relaunches
                    self.log.info(
                        "The stream supervisor has brought the driver back, %d times in all.", relaunches
                    )
            elif time.monotonic() >= warn_at_s:
                self.log.warning(NO_SUPERVISOR, SUPERVISOR_WARNING_S)
                warn_at_s = time.monotonic() + SUPERVISOR_WARNING_S
            await asyncio.sleep(POLL_INTERVAL_S)

    @staticmethod
    def _end_of(report: LaunchReport) -> TriggerEvent:
        if report.error:
            return TriggerEvent(report.launch_id)  # type: ignore[no-untyped-call]  # of Airflow
        return TaskSuccessEvent()

    async def on_kill(self) -> None:
        """Stop the driver: an operator has ended the task. The next launch is made at once."""
        home = Settings().home
        driver_launch.withdraw(home, self.follower)
        launch_failures.request_launch(home)

    async def _wait_until_due(self, settings: Settings) -> None:
        """Wait until the next launch is due, or requested."""
        longest_s = settings.stream.longest_relaunch_delay_s
        series = launch_failures.read(settings.home)
        wait_s = 0.0 if series is None else series.wait_s(datetime.now(UTC), longest_s)
        if series is not None and wait_s:
            self.log.warning(
                "The stream driver has failed %s since %s. Next launch in %.0f s; `./foldlake up`, or clearing this "
                "task, launches it at once. Last error: %s",
                series.count,
                series.since,
                wait_s,
                series.last_error,
            )
        # If the clock is set back meanwhile, the launch is not made later than that.
        until_s = time.monotonic() + longest_s
        while time.monotonic() < until_s and not launch_failures.is_launch_requested(settings.home):
            series = launch_failures.read(settings.home)
            if series is None or not series.wait_s(datetime.now(UTC), longest_s):
                return
            await asyncio.sleep(POLL_INTERVAL_S)


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
            self.log.info("The stream driver is requested: launch %s.", driver_launch.follow(home, follower))
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
