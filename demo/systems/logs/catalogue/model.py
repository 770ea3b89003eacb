"""The read model `products`: the newest name and category of each product, and its API."""

from foldlake import Latency, Lookup, Placement, ReadModel, StateField

FIELDS = ("name", "category")

DECLARATIONS = [
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
