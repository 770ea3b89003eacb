"""The route `product-names`: changes of the catalogue, in the same order as the views of each product."""

from foldlake import Latency, Route

# The fold then has the product's name when its count reaches the threshold: a join by key is a fold of two event types.
DECLARATIONS = [
    Route(
        name="product-names",
        source_topic="catalogue",
        event_types=("Product",),
        output_topic="product-views",
        latency=Latency.SECOND,
    ),
]
