"""The route `late-browser-actions`: each action that does not count in one of its windows, so that nothing is lost quietly."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.event_types.event_format import EventFormat
from include.declarations.latency import Latency
from include.declarations.route import Route

from .hopping import missed

if TYPE_CHECKING:
    from pyspark.sql import Column


def late_action() -> "Mapping[str, Column]":
    """The fields of a LateBrowserAction; `item` is the start of a window."""
    from pyspark.sql.functions import col

    return {
        "occurredOn": col("occurredOn"),
        "browserHash": col("browserHash"),
        "windowStart": col("item"),
        "writtenOn": col("timestamp"),
    }


DECLARATIONS = [
    Route(
        name="late-browser-actions",
        source_topic="logs",
        source_format=EventFormat.JSON,
        event_types=("BrowserActionLogged",),
        each=missed,
        output_topic="late-browser-actions",
        output_type="LateBrowserAction",
        fields=late_action,
        latency=Latency.SECOND,
    ),
]
