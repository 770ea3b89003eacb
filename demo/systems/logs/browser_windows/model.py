"""The read model `browser-windows`: the actions of each browser in each window, and its API."""

from foldlake import TIMESTAMP_MILLIS, Expiry, ReadModel, StateField, WindowLookup

from .hopping import WINDOW

DECLARATIONS = [
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
]
