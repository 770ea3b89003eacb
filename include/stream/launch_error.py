"""The cause of a failed launch of the stream driver in one line, from the output of spark-submit."""

import re
import signal

# The driver's own log (spark_jobs/runtime/session.py).
LOGGED = re.compile(r"^\S+ \S+Z (?:ERROR|CRITICAL) [\w.]+: (?P<error>.+)$")
# The last line of a Python traceback, the first one of a Java stack trace (after a colon: one that Python has passed on), and its causes.
RAISED = re.compile(
    r"^(?::\s|Exception in thread \"[^\"]*\" |Caused by: )?(?P<error>(?:[\w$]+\.)*[\w$]*(?:Error|Exception)\b(?::.*)?)$"
)
STATUS = re.compile(r"Error code is: (?P<status>-?\d+)")
MAX_CHARACTERS = 300


def error_line(text: str) -> str:
    """Return the last error in the output of spark-submit, without it the last line, or the signal that ended the driver.

    text: Airflow's error message: a line with the exit status, then the end of the output.
    """
    head, *output = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    found = [match["error"] for line in output if (match := LOGGED.match(line) or RAISED.match(line))]
    return " ".join((found[-1] if found else _without_error(head, output)).split())[:MAX_CHARACTERS]


def _without_error(head: str, output: list[str]) -> str:
    match = STATUS.search(head)
    if match is None:
        return head
    status = int(match["status"])
    if status < 0:
        return f"killed by {_signal_name(-status)}"
    return output[-1] if output else f"ended with exit status {status} and without output"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
