"""The read model `product-views`: the number of views of each product, and its name.

With the routes that key views by the product instead of the thread and bring changes of the catalogue beside them, an emission for each
product that reaches 1,000 views, and a periodic emission of the views of all products.
"""

from foldlake import (
    KEY,
    TICK,
    Emission,
    EventFormat,
    Latency,
    Lookup,
    LookupJoin,
    PeriodicEmission,
    ReadModel,
    Route,
    StateField,
)

IS_CHANGE = "event_type = 'Product'"

# The view that reaches the threshold completes an alert, or, if there was no name then, the first name. Each product satisfies one of the two
# once: views and changes grow by one.
REACHES = "event_type = 'ProductView' AND state.views = 1000 AND state.changes >= 1"
IS_NAMED = "event_type = 'Product' AND state.changes = 1 AND state.views >= 1000"

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
    # The fold then has the product's name when its count reaches the threshold: a join by key is a fold of two event types.
    Route(
        name="product-names",
        source_topic="catalogue",
        event_types=("Product",),
        output_topic="product-views",
        latency=Latency.SECOND,
    ),
    ReadModel(
        name="product-views",
        source_topic="product-views",
        event_types=("ProductView", "Product"),
        key="productId",
        state=(
            StateField("views", "long", "Number of views."),
            StateField("name", "string", "Name of the product; empty until the catalogue has one."),
            StateField("changes", "long", "Number of entries that the catalogue has had for the product."),
        ),
        folds={
            1: {
                "views": "count(CASE WHEN event_type = 'ProductView' THEN 1 END)",
                "name": f"coalesce(max_by(Product.name, CASE WHEN {IS_CHANGE} THEN offset END), '')",
                "changes": f"count(CASE WHEN {IS_CHANGE} THEN 1 END)",
            }
        },
        # The name of the newest part that has one.
        merges={
            1: {
                "views": "sum(views)",
                "name": "coalesce(max_by(name, CASE WHEN changes > 0 THEN source_offset END), '')",
                "changes": "sum(changes)",
            }
        },
        key_doc="Id of the product.",
    ),
    # Joined with the product's entry in the catalogue.
    Lookup(
        "/api/products.getViews",
        parameter="productId",
        fields=("views",),
        max_key_bytes=64,
        example="product-1",
        join=LookupJoin("products", fields=("name", "category")),
    ),
    Emission(
        name="popular-products",
        read_model="product-views",
        output_topic="popular-products",
        output_type="PopularProduct",
        where=f"{REACHES} OR {IS_NAMED}",
        fields={
            "occurredOn": "occurredOn",
            "productId": "productId",
            "name": "state.name",
            "views": "state.views",
        },
    ),
    PeriodicEmission(
        name="product-view-counts",
        read_model="product-views",
        output_topic="product-view-counts",
        output_type="ProductViewCount",
        fields={"productId": KEY, "name": "name", "views": "views", "asOf": TICK},
    ),
]
