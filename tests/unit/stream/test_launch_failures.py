"""A driver that fails soon after each launch is launched at growing intervals; one that ran steadily is launched at once.

The cause of a failed launch is one line of the driver's output.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from include.stream import launch_failures
from include.stream.launch_failures import (
    MAX_CHARACTERS,
    STEADY_S,
    LaunchFailures,
    after_failure,
    delay_s,
    error_line,
)

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LONGEST_S = 300.0
HEAD = "Cannot execute: spark-submit --master local[28] stream.py. Error code is: 1.\nLast spark-submit output:\n"
LOGGED = """
2026-05-01 12:00:00,120Z INFO foldlake.stream: driver 7
2026-05-01 12:00:01,120Z ERROR foldlake.stream: The topic balance has 2 partitions, not 4.
26/05/01 12:00:02 WARN SparkContext: stopped
"""
RAISED = """
Traceback (most recent call last):
  File "model.py", line 3
    raise ReadModelError("…")
include.errors.ReadModelError: Module x has no READ_MODEL
Shutting down
"""
IN_JAVA = """
Exception in thread "main" org.apache.spark.SparkException: Master must start with local
    at org.apache.spark.deploy.SparkSubmit.main(SparkSubmit.scala)
"""
PASSED_ON = """
py4j.protocol.Py4JJavaError: An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: Could not parse Master URL: 'sparkle://127.0.0.1:7077'
    at org.apache.spark.SparkContext$.createTaskScheduler(SparkContext.scala)
"""


def seconds_later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def failing(failures: int, *, ran_s: float = 10.0) -> LaunchFailures:
    """Return a series in which each driver ran for `ran_s` seconds and was launched when it was due."""
    series: LaunchFailures | None = None
    at = NOW
    for _ in range(failures):
        series = after_failure(series, at, "it fails", at + timedelta(seconds=ran_s), LONGEST_S)
        at = datetime.fromisoformat(series.next_launch_at)
    assert series is not None
    return series


def test_the_delay_doubles_up_to_the_longest() -> None:
    delays = [delay_s(failures, LONGEST_S) for failures in range(1, 13)]

    assert delays == [0, 0, 0, 5, 10, 20, 40, 80, 160, 300, 300, 300]
    assert delay_s(100_000, LONGEST_S) == LONGEST_S


def test_a_driver_that_fails_at_once_is_launched_few_times_in_an_hour() -> None:
    series, launches, at = None, 0, NOW
    while at < seconds_later(3600):
        launches += 1
        series = after_failure(series, at, "it fails", at + timedelta(seconds=8), LONGEST_S)
        at = max(at + timedelta(seconds=8), datetime.fromisoformat(series.next_launch_at))

    assert launches < 25


def test_the_series_begins_with_its_first_failure() -> None:
    series = failing(5)

    assert (series.failures, series.since, series.last_error) == (
        5,
        seconds_later(10).isoformat(),
        "it fails",
    )


def test_a_failure_after_a_steady_run_begins_a_new_series() -> None:
    ended = seconds_later(STEADY_S)

    series = after_failure(failing(7), NOW, "another error", ended, LONGEST_S)

    assert (series.failures, series.since, series.next_launch_at) == (1, ended.isoformat(), ended.isoformat())


def test_the_series_is_over_while_the_driver_runs_steadily(tmp_path: Path) -> None:
    series = replace(failing(7), launched_at=NOW.isoformat())
    launch_failures.write(tmp_path, series)

    assert launch_failures.read(tmp_path, seconds_later(STEADY_S - 1)) == series
    assert launch_failures.read(tmp_path, seconds_later(STEADY_S)) is None


def test_the_series_survives_the_process_that_recorded_it(tmp_path: Path) -> None:
    assert launch_failures.read(tmp_path) is None

    launch_failures.write(tmp_path, failing(7))

    assert launch_failures.read(tmp_path) == failing(7)
    assert launch_failures.is_waiting(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"failures": 3, "since": "yesterday"'])
def test_a_damaged_file_delays_nothing(tmp_path: Path, content: str) -> None:
    launch_failures.write(tmp_path, failing(7))
    (tmp_path / "stream" / "failed-launches.json").write_text(content)

    assert launch_failures.read(tmp_path) is None


def test_a_clock_that_was_set_back_does_not_delay_a_launch_further() -> None:
    series = failing(12)

    assert series.wait_s(NOW - timedelta(days=400), LONGEST_S) == LONGEST_S


def test_a_driver_whose_end_was_not_recorded_is_launched_at_once() -> None:
    series = failing(9)
    launched = replace(series, launched_at=series.next_launch_at)

    assert launched.wait_s(datetime.fromisoformat(series.next_launch_at), LONGEST_S) == 0


def test_an_operator_can_request_a_launch_at_once(tmp_path: Path) -> None:
    launch_failures.write(tmp_path, failing(7))

    launch_failures.request_launch(tmp_path)
    assert launch_failures.is_launch_requested(tmp_path)

    launch_failures.clear_request(tmp_path)
    assert not launch_failures.is_launch_requested(tmp_path)


def test_a_driver_that_does_not_fail_needs_no_request(tmp_path: Path) -> None:
    launch_failures.request_launch(tmp_path)

    assert not launch_failures.is_launch_requested(tmp_path)


def test_a_series_is_alerted_on_once_when_it_becomes_long() -> None:
    series, alerts, at = None, [], NOW
    for failures in range(1, 20):
        series = after_failure(series, at, "it fails", at, LONGEST_S)
        if series.is_due_for_alert(at):
            alerts.append(failures)
            series = replace(series, alerted=True)
        at = datetime.fromisoformat(series.next_launch_at)

    assert alerts == [4]


def test_a_driver_that_takes_minutes_to_fail_is_alerted_on_at_its_second_or_third_failure() -> None:
    assert not failing(1, ran_s=150).is_due_for_alert(seconds_later(150))
    assert failing(3, ran_s=150).is_due_for_alert(seconds_later(450))


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (LOGGED, "The topic balance has 2 partitions, not 4."),
        (RAISED, "include.errors.ReadModelError: Module x has no READ_MODEL"),
        (
            PASSED_ON,
            "org.apache.spark.SparkException: Could not parse Master URL: 'sparkle://127.0.0.1:7077'",
        ),
        (IN_JAVA, "org.apache.spark.SparkException: Master must start with local"),
        ("The lock is still held by process 7.", "The lock is still held by process 7."),
    ],
)
def test_the_error_is_the_last_one_in_the_output(output: str, line: str) -> None:
    assert error_line(HEAD + output) == line


def test_a_driver_without_output_is_described_by_its_exit_status() -> None:
    assert error_line("Cannot execute: spark-submit. Error code is: 3.") == (
        "ended with exit status 3 and without output"
    )


def test_a_killed_driver_is_described_by_its_signal() -> None:
    text = "Cannot execute: spark-submit. Error code is: -9.\nLast spark-submit output:\nsome progress"

    assert error_line(text) == "killed by SIGKILL"


@pytest.mark.parametrize("status", [-9, 137])
def test_a_killed_driver_s_last_trace_is_not_its_cause(status: int) -> None:
    text = f"Cannot execute: spark-submit. Error code is: {status}.\n{IN_JAVA}"

    assert error_line(text) == "killed by SIGKILL"


def test_a_line_of_a_stack_trace_is_not_a_cause() -> None:
    output = "some progress\n    at org.apache.spark.X.run(X.scala:236)\n    ... 3 more"

    assert error_line(f"Cannot execute: spark-submit. Error code is: 1.\n{output}") == "some progress"


def test_another_error_is_its_own_description() -> None:
    assert error_line("FOLDLAKE_HOME is not writable.\nhint") == "FOLDLAKE_HOME is not writable."
    assert error_line("") == ""


def test_a_long_error_is_truncated() -> None:
    assert len(error_line("x" * 5_000)) == MAX_CHARACTERS
