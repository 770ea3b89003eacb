"""A read model with a location, for the tests of streams: where each buoy was seen last."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.api import Location, Lookup
from include.declarations.read_model import ReadModel, StateField

if TYPE_CHECKING:
    from pyspark.sql import Column


def buoy() -> "Column":
    """Key: the buoy's name."""
    from pyspark.sql.functions import col

    return col("buoy")


def newest_position() -> "Mapping[str, Column]":
    """Fold: the fields of the newest event."""
    from pyspark.sql import functions as F

    return {name: F.max_by(name, "offset") for name in ("lat", "lon", "label")}


READ_MODEL = ReadModel(
    name="buoy-position",
    source_topic="buoys",
    event_types=("BuoySeen",),
    key=buoy,
    state=(StateField("lat", "double"), StateField("lon", "double"), StateField("label", "string")),
    folds={1: newest_position},
)
DECLARATIONS = [
    READ_MODEL,
    Lookup("/api/buoys.getPosition", "buoy", ("lat", "lon", "label"), example="b-1"),
    Location("lat", "lon"),
]
