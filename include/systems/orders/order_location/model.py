"""The read model `order-location`: the newest location of each order until it is delivered or cancelled."""

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from include.declarations.lifetimes.expiry import Expiry
from include.declarations.read_model import TIMESTAMP_MILLIS, ReadModel, StateField
from include.settings import Placement

if TYPE_CHECKING:
    from pyspark.sql import Column

# State field -> the field of the event that it comes from.
FIELDS = {
    "courier": "courier",
    "latitude": "latitude",
    "longitude": "longitude",
    "status": "status",
    "placed_on": "placedOn",
    "located_on": "occurredOn",
}
ENDS = ("DELIVERED", "CANCELLED")


def order_number() -> "Column":
    """Key: the number of the order."""
    from pyspark.sql.functions import col

    return col("orderNumber")


def newest_location() -> "Mapping[str, Column]":
    """Fold: the fields of the update that happened last; of two at the same time, the one that was written later."""
    from pyspark.sql import functions as F

    newest = F.max_by(F.struct(*FIELDS.values()), F.struct("occurredOn", "offset"))
    return {name: newest.getField(source) for name, source in FIELDS.items()}


def is_final() -> "Column":
    """An order ends with the first update that says so, even if an older one arrives after it."""
    from pyspark.sql.functions import col

    return col("status").isin(*ENDS)


READ_MODEL = ReadModel(
    name="order-location",
    source_topic="order-location",
    event_types=("OrderLocation",),
    key=order_number,
    state=(
        StateField("courier", "string", "The courier."),
        StateField("latitude", "double", "Degrees north of the equator, from -90 to 90."),
        StateField("longitude", "double", "Degrees east of Greenwich, from -180 to 180."),
        StateField("status", "string", "PLACED, PICKED_UP or ON_THE_WAY."),
        StateField("placed_on", TIMESTAMP_MILLIS, "When the order was placed, UTC."),
        StateField("located_on", TIMESTAMP_MILLIS, "When the order was there, UTC."),
    ),
    folds={1: newest_location},
    # Few at a time, and asked for all at once: every node holds all active orders.
    placement=Placement.REPLICATED,
    key_doc="Number of the order.",
    ended=is_final,
    # An order whose end is lost: it leaves when Spark forgets its state, 2 hours after its lifetime.
    expires=Expiry(time="placedOn", field="placed_on", after=timedelta(hours=6)),
)
DECLARATIONS = [READ_MODEL]
