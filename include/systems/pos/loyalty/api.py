"""The HTTP API of `loyalty`: the points of a card."""

from include.declarations.api import NamedLookup

DECLARATIONS = [
    NamedLookup(
        "/api/loyalty.getPoints",
        parameter="cardNumber",
        fields=("points", "spent", "invoices", "cancellations"),
        max_key_bytes=64,
        example="1791412060619272",
    ),
]
