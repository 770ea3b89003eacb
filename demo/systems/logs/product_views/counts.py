"""The periodic emission `product-view-counts`: the views of all products every 10 s, whether they have changed or not."""

from foldlake import KEY, TICK, PeriodicEmission

DECLARATIONS = [
    PeriodicEmission(
        name="product-view-counts",
        read_model="product-views",
        output_topic="product-view-counts",
        output_type="ProductViewCount",
        fields={"productId": KEY, "name": "name", "views": "views", "asOf": TICK},
    ),
]
