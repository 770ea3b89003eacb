"""The windows: 5 s long, one every 2 s, by the time of the log line; and which lines are too late for one."""

from datetime import timedelta
from typing import TYPE_CHECKING

from include.declarations.windows.hopping_window import HoppingWindow
from include.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import Column

WINDOW = HoppingWindow(size=timedelta(seconds=5), slide=timedelta(seconds=2))


def starts() -> "Column":
    """The starts of the windows that contain a line, ascending, as an array of times.

    As in Kafka Streams, a line from 1970 on is in no window that begins before 1970. A line from before is in all of its windows, so that
    `missed` has it: Kafka Streams drops it.
    """
    from pyspark.sql import functions as F

    size_ms, slide_ms = WINDOW.size_s * 1000, WINDOW.slide_s * 1000
    at_ms = F.unix_millis("occurredOn")
    newest_ms = at_ms - F.pmod(at_ms, F.lit(slide_ms).cast("bigint"))
    first_ms = newest_ms - (size_ms - 1) // slide_ms * slide_ms
    candidates = F.sequence(first_ms, newest_ms, F.lit(slide_ms).cast("bigint"))
    containing = F.filter(candidates, lambda start: (start + size_ms > at_ms) & ((start >= 0) | (at_ms < 0)))
    return F.transform(containing, lambda start: F.timestamp_millis(start))  # noqa: PLW0108 - Spark reads the parameter's name


def end(start: "Column") -> "Column":
    """The end of the window that begins at this time."""
    from pyspark.sql.functions import expr

    return start + expr(f"INTERVAL {WINDOW.size_s} SECONDS")


def key(start: "Column") -> "Column":
    """The key of a line's window that begins at this time, as `HoppingWindow.key` has it."""
    from pyspark.sql.functions import col, concat_ws, date_format

    return concat_ws("/", col("browserHash"), date_format(start, "yyyy-MM-dd'T'HH:mm:ss'Z'"))


def _is_accepted(start: "Column") -> "Column":
    """Whether a line was written before a window closes, which is the allowed lateness after its end, and is not of the future.

    At the time at which it closes, a window is closed, as in Kafka Streams and ksqlDB.
    `timestamp` is the time of the line's record in Kafka. Each line is accepted or not by itself, whatever was read before it, so that a
    rebuild makes the same windows.
    """
    from pyspark.sql.functions import col, expr

    lateness = expr(f"INTERVAL {Settings().stream.allowed_lateness_s} SECONDS")
    is_in_time = col("timestamp") < end(start) + lateness
    return is_in_time & (col("occurredOn") <= col("timestamp") + lateness)


def accepted() -> "Column":
    """The starts of the windows in which a line counts."""
    from pyspark.sql import functions as F

    return F.filter(starts(), _is_accepted)


def missed() -> "Column":
    """The starts of the windows for which a line is too late, or of the future."""
    from pyspark.sql import functions as F

    return F.filter(starts(), lambda start: ~_is_accepted(start))
