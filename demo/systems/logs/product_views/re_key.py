"""The route `product-views`: log lines about views, keyed by the product instead of the thread."""

from foldlake import EventFormat, Route

DECLARATIONS = [
    Route(
        name="product-views",
        source_topic="logs",
        source_format=EventFormat.JSON,
        event_types=("ProductViewLogged",),
        output_topic="product-views",
        output_type="ProductView",
        fields={"occurredOn": "occurredOn", "productId": "productId"},
    ),
]
