"""The catalogue: a route that keeps every change of the compacted topic `products`, and the read model `products` of it, with its API."""

from foldlake import Latency, Lookup, Placement, ReadModel, Route, StateField, TopicOptions

FIELDS = ("name", "category")

DECLARATIONS = [
    # Kafka removes all but the newest record of each product from `products`. Read models fold a log that is kept: what stands on
    # `catalogue` stays there in this order (docs/decisions/0054).
    Route(
        name="catalogue",
        source_topic="products",
        source=TopicOptions(compacted=True),
        event_types=("Product",),
        output_topic="catalogue",
        latency=Latency.SECOND,
    ),
    ReadModel(
        name="products",
        source_topic="catalogue",
        event_types=("Product",),
        key="productId",
        state=(
            StateField("name", "string", "Name of the product."),
            StateField("category", "string", "Its category."),
        ),
        folds={1: {name: f"max_by({name}, offset)" for name in FIELDS}},
        merges={1: {name: f"max_by({name}, source_offset)" for name in FIELDS}},
        latency=Latency.SECOND,
        # The global table: every node joins lookups with its own copy.
        placement=Placement.REPLICATED,
        key_doc="Id of the product.",
    ),
    Lookup(
        "/api/products.getProduct",
        parameter="productId",
        fields=FIELDS,
        max_key_bytes=64,
        example="product-1",
    ),
]
