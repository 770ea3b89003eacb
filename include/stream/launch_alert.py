"""The one alert of a series of failed launches."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from include.stream import launch_failures
from include.webhook import post_alert


def alert_if_due(home: Path, webhook_url: str) -> str | None:
    """Post the alert of the home's series if it is due and was not sent yet, and return its text.

    Raises OSError when it cannot be noted that it was sent; then it is not sent either.
    """
    series = launch_failures.read(home)
    if series is None or not series.is_due_for_alert(datetime.now(UTC)):
        return None
    launch_failures.write(home, replace(series, alerted=True))
    text = (
        f"The stream driver has failed {series.count} since {series.since}. A standby driver takes over, or it is "
        f"launched again at growing intervals; `./foldlake status` shows when; docs/runbook.md, FoldlakeStreamDown, says what to do. "
        f"Last error: {series.last_error}"
    )
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
    return text
