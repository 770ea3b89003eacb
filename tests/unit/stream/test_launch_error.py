"""The cause of a failed launch is one line of the output of spark-submit."""

import pytest

from include.stream.launch_failures import MAX_CHARACTERS, error_line

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


def test_another_error_is_its_own_description() -> None:
    assert error_line("FOLDLAKE_HOME is not writable.\nhint") == "FOLDLAKE_HOME is not writable."
    assert error_line("") == ""


def test_a_long_error_is_truncated() -> None:
    assert len(error_line("x" * 5_000)) == MAX_CHARACTERS
