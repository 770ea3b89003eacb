"""The catalogue: a route that keeps every change of the compacted topic `products`, and the read model `products` of it, with its API."""

from foldlake import Latency, Lookup, Placement, ReadModel, Route, StateField, TopicOptions

FIELDS = ("name", "category")

DECLARATIONS = [
    # Kafka removes all but the newest record of each product from `products`. A replay would find fewer events than were
    # folded, so read models fold `catalogue`, which keeps every change in one order.
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
