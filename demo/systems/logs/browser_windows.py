"""The read model `browser-windows`: the actions of each browser in windows of 5 s, one every 2 s, by the time of the log line.

With the routes that write each action once for each of its windows, and each action that is too late for one, so that nothing is lost
quietly.
"""

from datetime import timedelta

from foldlake import (
    TIMESTAMP_MILLIS,
    EventFormat,
    Expiry,
    HoppingWindow,
    Latency,
    ReadModel,
    Route,
    StateField,
    WindowLookup,
)
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

DECLARATIONS = [
    Route(
        name="browser-windows",
        source_topic="logs",
        source_format=EventFormat.JSON,
        event_types=("BrowserActionLogged",),
        each=ACCEPTED,
        output_topic="browser-windows",
        output_type="WindowedAction",
        # `item` is the start of a window.
        fields={
            "occurredOn": "occurredOn",
            "window": key("item"),
            "browserHash": "browserHash",
            "windowStart": "item",
            "windowEnd": end("item"),
        },
    ),
    ReadModel(
        name="browser-windows",
        source_topic="browser-windows",
        event_types=("WindowedAction",),
        # The browser and the start of the window, such as `ad0891632773690e/2026-03-02T08:00:04Z`.
        key="window",
        state=(
            StateField("actions", "long", "Number of actions."),
            StateField("window_start", TIMESTAMP_MILLIS, "Start of the window, UTC."),
            StateField(
                "window_end", TIMESTAMP_MILLIS, "End of the window, UTC; an action at this time is not in it."
            ),
        ),
        # Start and end are the same in all events of a window.
        folds={
            1: {
                "actions": "count(browserHash)",
                "window_start": "max(windowStart)",
                "window_end": "max(windowEnd)",
            }
        },
        expires=Expiry(time="windowEnd", field="window_end"),
        key_doc="The browser and the start of the window.",
    ),
    # The windows of a browser that begin in a range of time.
    WindowLookup(
        "/api/browsers.getWindows",
        parameter="browserHash",
        window=WINDOW,
        fields=("window_start", "window_end", "actions"),
        max_item_bytes=64,
        example="ad0891632773690e",
    ),
    Route(
        name="late-browser-actions",
        source_topic="logs",
        source_format=EventFormat.JSON,
        event_types=("BrowserActionLogged",),
        each=MISSED,
        output_topic="late-browser-actions",
        output_type="LateBrowserAction",
        # `item` is the start of a window.
        fields={
            "occurredOn": "occurredOn",
            "browserHash": "browserHash",
            "windowStart": "item",
            "writtenOn": "timestamp",
        },
        latency=Latency.SECOND,
    ),
]
