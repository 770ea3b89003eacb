"""The route `product-views`: log lines about views, keyed by the product instead of the thread."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.event_types.event_format import EventFormat
from include.declarations.route import Route

if TYPE_CHECKING:
    from pyspark.sql import Column


def product_view() -> "Mapping[str, Column]":
    """The fields of a ProductView."""
    from pyspark.sql.functions import col

    return {name: col(name) for name in ("occurredOn", "productId")}


DECLARATIONS = [
    Route(
        name="product-views",
        source_topic="logs",
        source_format=EventFormat.JSON,
        event_types=("ProductViewLogged",),
        output_topic="product-views",
        output_type="ProductView",
        fields=product_view,
    ),
]
