"""The windows: 5 s long, one every 2 s, by the time of the log line; and the lines that are too late for one."""

from datetime import timedelta

from foldlake import HoppingWindow
from include.settings import Settings

WINDOW = HoppingWindow(size=timedelta(seconds=5), slide=timedelta(seconds=2))
SIZE_MS, SLIDE_MS = WINDOW.size_s * 1000, WINDOW.slide_s * 1000

AT = "unix_millis(occurredOn)"
_NEWEST = f"{AT} - pmod({AT}, {SLIDE_MS}L)"
_FIRST = f"{_NEWEST} - {(SIZE_MS - 1) // SLIDE_MS * SLIDE_MS}"
# The starts of the windows that contain a line, ascending, as an array of times. As in Kafka Streams, a line from 1970 on is in no window that
# begins before 1970. A line from before is in all of its windows, so that MISSED has it: Kafka Streams drops it.
STARTS = (
    f"transform(filter(sequence({_FIRST}, {_NEWEST}, {SLIDE_MS}L), start -> start + {SIZE_MS} > {AT} AND (start >= 0 OR {AT} < 0)), "
    "start -> timestamp_millis(start))"
)


def end(start: str) -> str:
    """The end of the window that begins at this time."""
    return f"{start} + INTERVAL {WINDOW.size_s} SECONDS"


def key(start: str) -> str:
    """The key of a line's window that begins at this time, as `HoppingWindow.key` has it."""
    return f"concat_ws('/', browserHash, date_format({start}, \"yyyy-MM-dd'T'HH:mm:ss'Z'\"))"


def _is_accepted(start: str) -> str:
    """Whether a line was written before a window closes, which is the allowed lateness after its end, and is not of the future.

    At the time at which it closes, a window is closed, as in Kafka Streams and ksqlDB. `timestamp` is the time of the line's record in Kafka.
    Each line is accepted or not by itself, whatever was read before it, so that a rebuild makes the same windows.
    """
    lateness = f"INTERVAL {Settings().stream.allowed_lateness_s} SECONDS"
    return f"timestamp < {end(start)} + {lateness} AND occurredOn <= timestamp + {lateness}"


# The starts of the windows in which a line counts, and of those for which it is too late, or of the future.
ACCEPTED = f"filter({STARTS}, start -> {_is_accepted('start')})"
MISSED = f"filter({STARTS}, start -> NOT ({_is_accepted('start')}))"
