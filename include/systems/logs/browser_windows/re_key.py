"""The route `browser-windows`: each action once for each of its windows, keyed by browser and window."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.event_types.event_format import EventFormat
from include.declarations.route import Route

from .hopping import accepted, end, key

if TYPE_CHECKING:
    from pyspark.sql import Column


def windowed_action() -> "Mapping[str, Column]":
    """The fields of a WindowedAction; `item` is the start of a window."""
    from pyspark.sql.functions import col

    return {
        "occurredOn": col("occurredOn"),
        "window": key(col("item")),
        "browserHash": col("browserHash"),
        "windowStart": col("item"),
        "windowEnd": end(col("item")),
    }


DECLARATIONS = [
    Route(
        name="browser-windows",
        source_topic="logs",
        source_format=EventFormat.JSON,
        event_types=("BrowserActionLogged",),
        each=accepted,
        output_topic="browser-windows",
        output_type="WindowedAction",
        fields=windowed_action,
    ),
]
