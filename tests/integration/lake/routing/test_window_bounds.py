"""The windows of a line at their bounds: start, end, closing, 1970, and before; each window is counted or missed, never both."""

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from demo.systems.logs.browser_windows import ACCEPTED, MISSED
from include.settings import Settings

LATENESS_MS = Settings().stream.allowed_lateness_s * 1000
# Time of the line, when it was written (both in ms since 1970), the starts in which it counts, and those that it misses (in s).
LINES = [
    # At the start of a window and 1 ms before, at the end (6 s is that of the window from 1 s, which is none) and around it.
    (10_000, 10_000, [6, 8, 10], []),
    (9_999, 9_999, [6, 8], []),
    (10_001, 10_001, [6, 8, 10], []),
    (10_999, 10_999, [6, 8, 10], []),
    (11_000, 11_000, [8, 10], []),
    # The window from 6 s ends at 11 s. It is closed at its end plus the lateness.
    (10_000, 11_000 + LATENESS_MS - 1, [6, 8, 10], []),
    (10_000, 11_000 + LATENESS_MS, [8, 10], [6]),
    (10_000, 11_000 + LATENESS_MS + 1, [8, 10], [6]),
    (10_000, 15_000 + LATENESS_MS, [], [6, 8, 10]),
    # As far ahead as the lateness, and further.
    (10_000, 10_000 - LATENESS_MS, [6, 8, 10], []),
    (10_001, 10_000 - LATENESS_MS, [], [6, 8, 10]),
    # No window begins before 1970 for a line from 1970 on; a line from before is in all of its windows.
    (0, 0, [0], []),
    (1, 1, [0], []),
    (2_000, 2_000, [0, 2], []),
    (4_000, 4_000, [0, 2, 4], []),
    (5_000, 5_000, [2, 4], []),
    (-1, 0, [-4, -2], []),
    (-1, 1_000 + LATENESS_MS, [-2], [-4]),
    (-1, 3_000 + LATENESS_MS, [], [-4, -2]),
    (-4_000, 1_767_225_600_000, [], [-8, -6, -4]),
]


def test_each_window_of_a_line_is_counted_or_missed(lake_spark: SparkSession) -> None:
    rows = [(number, at, written) for number, (at, written, _, _) in enumerate(LINES)]
    lines = lake_spark.createDataFrame(rows, "number int, at bigint, written bigint").select(
        "number",
        F.timestamp_millis("at").alias("occurredOn"),
        F.timestamp_millis("written").alias("timestamp"),
    )
    seconds = {
        name: F.transform(starts, lambda start: F.unix_seconds(start)).alias(name)  # noqa: PLW0108 - Spark reads the parameter's name
        for name, starts in {"counted": F.expr(ACCEPTED), "missed": F.expr(MISSED)}.items()
    }

    found = lines.select("number", *seconds.values()).orderBy("number").collect()

    assert [(row.counted, row.missed) for row in found] == [(counted, late) for *_, counted, late in LINES]
