"""The route `browser-windows`: each action once for each of its windows, keyed by browser and window."""

from foldlake import EventFormat, Route

from .hopping import ACCEPTED, end, key

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
]
