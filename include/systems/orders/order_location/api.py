"""The HTTP API of `order-location`: where an order is. An order that has been delivered or cancelled is an unknown key."""

from include.declarations.api import NamedLookup
from include.declarations.location import Location

DECLARATIONS = [
    Location("latitude", "longitude"),
    NamedLookup(
        "/api/orders.getLocation",
        parameter="orderNumber",
        fields=("courier", "latitude", "longitude", "status", "placed_on", "located_on"),
        max_key_bytes=64,
        example="O-1000042",
    ),
]
