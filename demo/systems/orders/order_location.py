"""The read model `order-location`: the newest location of each order until it is delivered or cancelled, and its API."""

from datetime import timedelta

from foldlake import TIMESTAMP_MILLIS, Expiry, Location, Lookup, Placement, ReadModel, StateField

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
# The update that happened last; of two at the same time, the one that was written later.
NEWEST = f"max_by(struct({', '.join(FIELDS.values())}), struct(occurredOn, offset))"

READ_MODEL = ReadModel(
    name="order-location",
    source_topic="order-location",
    event_types=("OrderLocation",),
    key="orderNumber",
    state=(
        StateField("courier", "string", "The courier."),
        StateField("latitude", "double", "Degrees north of the equator, from -90 to 90."),
        StateField("longitude", "double", "Degrees east of Greenwich, from -180 to 180."),
        StateField("status", "string", "PLACED, PICKED_UP or ON_THE_WAY."),
        StateField("placed_on", TIMESTAMP_MILLIS, "When the order was placed, UTC."),
        StateField("located_on", TIMESTAMP_MILLIS, "When the order was there, UTC."),
    ),
    folds={1: {name: f"{NEWEST}.{source}" for name, source in FIELDS.items()}},
    # Few at a time, and asked for all at once: every node holds all active orders.
    placement=Placement.REPLICATED,
    key_doc="Number of the order.",
    # An order ends with the first update that says so, even if an older one arrives after it.
    ended=f"status IN {ENDS}",
    # An order whose end is lost: it leaves when Spark forgets its state, 2 hours after its lifetime.
    expires=Expiry(time="placedOn", field="placed_on", after=timedelta(hours=6)),
)
DECLARATIONS = [
    READ_MODEL,
    Location("latitude", "longitude"),
    # An order that has been delivered or cancelled is an unknown key.
    Lookup(
        "/api/orders.getLocation",
        parameter="orderNumber",
        fields=tuple(FIELDS),
        max_key_bytes=64,
        example="O-1000042",
    ),
]
