"""The read model `browser-windows`: the actions of each browser in each window."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.lifetimes.expiry import Expiry
from include.declarations.read_model import TIMESTAMP_MILLIS, ReadModel, StateField

if TYPE_CHECKING:
    from pyspark.sql import Column


def window() -> "Column":
    """Key: the browser and the start of the window, such as `ad0891632773690e/2026-03-02T08:00:04Z`."""
    from pyspark.sql.functions import col

    return col("window")


def actions() -> "Mapping[str, Column]":
    """Fold: the number of actions; start and end are the same in all events of a window."""
    from pyspark.sql import functions as F

    return {
        "actions": F.count("browserHash"),
        "window_start": F.max("windowStart"),
        "window_end": F.max("windowEnd"),
    }


DECLARATIONS = [
    ReadModel(
        name="browser-windows",
        source_topic="browser-windows",
        event_types=("WindowedAction",),
        key=window,
        state=(
            StateField("actions", "long", "Number of actions."),
            StateField("window_start", TIMESTAMP_MILLIS, "Start of the window, UTC."),
            StateField(
                "window_end", TIMESTAMP_MILLIS, "End of the window, UTC; an action at this time is not in it."
            ),
        ),
        folds={1: actions},
        expires=Expiry(time="windowEnd", field="window_end"),
        key_doc="The browser and the start of the window.",
    ),
]
