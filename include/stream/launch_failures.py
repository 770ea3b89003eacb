"""Launches of the stream driver that failed one after the other: their cause, when the next one is due, and the one alert of the series.

The state is a file in FOLDLAKE_HOME, so that it survives a restart of Airflow. Only the task that launches the driver writes it.
"""

import json
import re
import signal
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import SecretStr

from include.files import write_atomically
from include.unknown_fields import ignore_unknown_fields
from include.webhook import post_alert

# A driver that has run for this long has recovered: the next failure begins a new series. It is longer than a driver needs to give
# up on Kafka (2 min), or on a live version's query that fails 8 times in a row.
STEADY_S = 900.0
# After the first failures of a series, the next launch is due at once: a driver that was killed returns within seconds.
AT_ONCE_FAILURES = 3
FIRST_DELAY_S = 5.0
# One alert for each series, when it has this many failures, or has lasted this long.
ALERT_FAILURES = 4
ALERT_AFTER_S = 300.0
# The driver's own log (spark_jobs/runtime/session.py).
LOGGED = re.compile(r"^\S+ \S+Z (?:ERROR|CRITICAL) [\w.]+: (?P<error>.+)$")
# The last line of a Python traceback, the first one of a Java stack trace (after a colon: one that Python has passed on), and its causes.
RAISED = re.compile(
    r"^(?::\s|Exception in thread \"[^\"]*\" |Caused by: )?(?P<error>(?:[\w$]+\.)*[\w$]*(?:Error|Exception)\b(?::.*)?)$"
)
STATUS = re.compile(r"Error code is: (?P<status>-?\d+)")
# Lines of a Java stack trace.
FRAMES = ("at ", "... ")
# A shell reports a process that a signal has ended as this and the signal's number.
ENDED_BY_SIGNAL = 128
MAX_CHARACTERS = 300


@dataclass(frozen=True)
class LaunchFailures:
    """Failed launches in a row. All times are ISO, in UTC.

    since: when the first of them failed. next_launch_at: the next launch is not made before.
    launched_at: when the current launch was made; empty while the next one is awaited.
    alerted: whether this series has been alerted on.
    """

    failures: int
    since: str
    last_error: str
    next_launch_at: str
    launched_at: str = ""
    alerted: bool = False

    @property
    def count(self) -> str:
        """The number of failures in words: `once`, `7 times in a row`."""
        return "once" if self.failures == 1 else f"{self.failures} times in a row"

    def is_over(self, now: datetime) -> bool:
        """Whether the driver has run steadily since its last launch."""
        return bool(self.launched_at) and _seconds(self.launched_at, now) >= STEADY_S

    def lasted_s(self, now: datetime) -> float:
        """Return the time since the first failure."""
        return max(0.0, _seconds(self.since, now))

    def wait_s(self, now: datetime, longest_delay_s: float) -> float:
        """Return the time until the next launch is due; at most `longest_delay_s`, even if the clock was set back."""
        return min(longest_delay_s, max(0.0, -_seconds(self.next_launch_at, now)))

    def is_due_for_alert(self, now: datetime) -> bool:
        """Whether the series has become long and has not been alerted on."""
        is_long = self.failures >= ALERT_FAILURES or self.lasted_s(now) >= ALERT_AFTER_S
        return is_long and not self.alerted


def delay_s(failures: int, longest_delay_s: float) -> float:
    """Return the delay after this number of failures in a row: it doubles with each, up to `longest_delay_s`."""
    if failures <= AT_ONCE_FAILURES:
        return 0.0
    # The exponent is limited: the power of a long series would exceed the range of a float.
    return min(longest_delay_s, FIRST_DELAY_S * 2.0 ** min(failures - AT_ONCE_FAILURES - 1, 32))


def after_failure(
    before: LaunchFailures | None, launched_at: datetime, error: str, now: datetime, longest_delay_s: float
) -> LaunchFailures:
    """Return the series after another failure, of a driver that was launched at `launched_at` and ended `now`."""
    if before is None or (now - launched_at).total_seconds() >= STEADY_S:
        before = LaunchFailures(failures=0, since=now.isoformat(), last_error="", next_launch_at="")
    failures = before.failures + 1
    due = now + timedelta(seconds=delay_s(failures, longest_delay_s))
    return replace(
        before, failures=failures, last_error=error, next_launch_at=due.isoformat(), launched_at=""
    )


def read(home: Path, now: datetime | None = None) -> LaunchFailures | None:
    """Return the series of failures that lasts until now; None while the driver runs steadily, or was never launched."""
    try:
        series = LaunchFailures(**ignore_unknown_fields(LaunchFailures, json.loads(_path(home).read_text())))
        return None if series.is_over(now or datetime.now(UTC)) else series
    except (FileNotFoundError, ValueError, TypeError):
        return None


def write(home: Path, series: LaunchFailures) -> None:
    """Store the series."""
    write_atomically(_path(home), json.dumps(asdict(series), indent=1))


def clear(home: Path) -> None:
    """Forget the series."""
    _path(home).unlink(missing_ok=True)


def is_waiting(home: Path) -> bool:
    """Return whether the next launch is being awaited."""
    series = read(home)
    return series is not None and not series.launched_at


def request_launch(home: Path) -> None:
    """Let the next launch be made at once, for an operator who has corrected the cause."""
    if read(home) is not None:
        write_atomically(_request_path(home), "")


def is_launch_requested(home: Path) -> bool:
    """Return whether the next launch is to be made at once."""
    return _request_path(home).exists()


def clear_request(home: Path) -> None:
    """Forget the request: a launch is being made."""
    _request_path(home).unlink(missing_ok=True)


def _path(home: Path) -> Path:
    return home / "stream" / "failed-launches.json"


def _request_path(home: Path) -> Path:
    return home / "stream" / "launch-now"


def _seconds(since: str, now: datetime) -> float:
    """Return the time from `since` to `now`; raises ValueError when `since` is not an ISO time."""
    return (now - datetime.fromisoformat(since)).total_seconds()


def error_line(text: str) -> str:
    """Return the last error in the output of spark-submit, without it the last line, or the signal that ended the driver.

    text: Airflow's error message: a line with the exit status, then the end of the output.
    """
    head, *output = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    match = STATUS.search(head)
    status = int(match["status"]) if match else 0
    ending = _signal_number(status)
    found = [raised["error"] for line in output if (raised := LOGGED.match(line) or RAISED.match(line))]
    lines = [line for line in output if not line.startswith(FRAMES)]
    if found and ending != signal.SIGKILL:
        error = found[-1]
    elif match is None:
        error = head
    elif ending is not None:
        # A killed driver has not logged why: its last lines are about something else.
        error = f"killed by {_signal_name(ending)}"
    else:
        error = lines[-1] if lines else f"ended with exit status {status} and without output"
    return " ".join(error.split())[:MAX_CHARACTERS]


def _signal_number(status: int) -> int | None:
    """Return the signal that ended a process: a negative status of Python, or 128 and the number as a shell reports it."""
    if status < 0:
        return -status
    return status - ENDED_BY_SIGNAL if status > ENDED_BY_SIGNAL else None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def alert_if_due(home: Path, webhook_url: SecretStr) -> str | None:
    """Post the alert of the home's series if it is due and was not sent yet, and return its text.

    Raises OSError when it cannot be noted that it was sent; then it is not sent either.
    """
    series = read(home)
    if series is None or not series.is_due_for_alert(datetime.now(UTC)):
        return None
    write(home, replace(series, alerted=True))
    text = (
        f"The stream driver has failed {series.count} since {series.since}. A standby driver takes over, or it is "
        f"launched again at growing intervals; `./foldlake status` shows when; docs/runbook.md, FoldlakeStreamDown, lists the remedies. "
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
