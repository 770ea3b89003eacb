"""The HTTP API of `products`: a product's entry in the catalogue."""

from include.declarations.api import NamedLookup

DECLARATIONS = [
    NamedLookup(
        "/api/products.getProduct",
        parameter="productId",
        fields=("name", "category"),
        max_key_bytes=64,
        example="product-1",
    ),
]
