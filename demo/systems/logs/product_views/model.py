"""The read model `product-views`: the number of views of each product, and its name."""

from foldlake import Lookup, LookupJoin, ReadModel, StateField

IS_CHANGE = "event_type = 'Product'"

DECLARATIONS = [
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
]
