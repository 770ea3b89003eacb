"""The route `late-browser-actions`: each action that does not count in one of its windows, so that nothing is lost quietly."""

from foldlake import EventFormat, Latency, Route

from .hopping import MISSED

DECLARATIONS = [
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
