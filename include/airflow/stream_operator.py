"""The Airflow operator that launches the stream driver, and after failed launches waits before the next one."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.sdk import AirflowException

from include.settings import Settings
from include.spark.stream_config import stream_config
from include.stream import launch_series
from include.stream.launch_error import error_line
from include.stream.launch_series import LaunchSeries
from include.waiting import wait_for
from include.webhook import post_alert

POLL_INTERVAL_S = 0.5


class StreamDriver(SparkSubmitOperator):
    """Runs spark_jobs/stream.py until it ends.

    While the driver fails soon after each launch, the next launch waits in this task, up to FOLDLAKE_STREAM_LONGEST_RELAUNCH_DELAY_S,
    instead of in further runs and tries. When such a series becomes long, one alert is logged and posted to the webhook.
    """

    def __init__(self, **operator: Any) -> None:  # noqa: ANN401 - Airflow's
        super().__init__(**operator)
        self._is_killed = False

    def execute(self, context: Any) -> None:  # noqa: ANN401 - Airflow's
        """Launch the driver when it is due, and wait until it ends; raises when it fails."""
        settings = Settings()
        self._wait_until_due(settings)
        launched_at = datetime.now(UTC)
        series = launch_series.read(settings.home, launched_at)
        if series is not None:
            launch_series.write(settings.home, replace(series, launched_at=launched_at.isoformat()))
        try:
            # Not when the DAG is parsed: a broken read model is a failed launch, with its error.
            self.conf = stream_config(settings)
            super().execute(context)
        except Exception as error:
            if not self._is_killed:
                self._record_failure(settings, series, launched_at, error)
            raise
        if launch_series.read(settings.home) is None:
            launch_series.clear(settings.home)

    def on_kill(self) -> None:
        """End the driver, or the wait; the next launch is made at once, because an operator has ended this one."""
        self._is_killed = True
        launch_series.request_launch(Settings().home)
        if self._hook is not None:
            super().on_kill()

    def _wait_until_due(self, settings: Settings) -> None:
        """Wait for the next launch; raises AirflowException when the task is ended meanwhile."""
        series = launch_series.read(settings.home)
        wait_s = 0.0 if series is None else self._announced_wait_s(settings, series)
        wait_for(
            lambda: self._is_killed or launch_series.is_launch_requested(settings.home),
            timeout_s=wait_s,
            poll_s=POLL_INTERVAL_S,
        )
        if self._is_killed:
            raise AirflowException("The task was ended while it waited for the next launch of the driver.")
        launch_series.clear_request(settings.home)

    def _announced_wait_s(self, settings: Settings, series: LaunchSeries) -> float:
        wait_s = series.wait_s(datetime.now(UTC), settings.stream.longest_relaunch_delay_s)
        if wait_s:
            self.log.warning(
                "The stream driver has failed %d times in a row since %s. Next launch in %.0f s; `./foldlake up`, or clearing this "
                "task, launches it at once. Last error: %s",
                series.failures,
                series.since,
                wait_s,
                series.last_error,
            )
        return wait_s

    def _record_failure(
        self, settings: Settings, before: LaunchSeries | None, launched_at: datetime, error: Exception
    ) -> None:
        now = datetime.now(UTC)
        longest_s = settings.stream.longest_relaunch_delay_s
        series = launch_series.after_failure(before, launched_at, error_line(str(error)), now, longest_s)
        if series.is_due_for_alert(now):
            series = replace(series, alerted=True)
            self._alert(settings.quality.alert_webhook_url, series)
        launch_series.write(settings.home, series)

    def _alert(self, webhook_url: str, series: LaunchSeries) -> None:
        text = (
            f"The stream driver has failed {series.failures} times in a row since {series.since}. It is launched again at growing "
            f"intervals; `./foldlake status` shows when. Last error: {series.last_error}"
        )
        self.log.error("%s", text)
        post_alert(
            webhook_url,
            {
                "text": text,
                "failures": series.failures,
                "since": series.since,
                "last_error": series.last_error,
                "next_launch_at": series.next_launch_at,
            },
        )
