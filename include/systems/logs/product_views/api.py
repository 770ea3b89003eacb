"""The HTTP API of `product-views`: the views of a product, joined with its entry in the catalogue."""

from include.declarations.api import LookupJoin, NamedLookup

DECLARATIONS = [
    NamedLookup(
        "/api/products.getViews",
        parameter="productId",
        fields=("views",),
        max_key_bytes=64,
        example="product-1",
        join=LookupJoin("products", fields=("name", "category")),
    ),
]
