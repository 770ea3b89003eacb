"""The read model `product-views`: the number of views of each product, and its name."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.read_model import ReadModel, StateField

if TYPE_CHECKING:
    from pyspark.sql import Column

VIEW, PRODUCT = "ProductView", "Product"


def product() -> "Column":
    """Key: the id of the product."""
    from pyspark.sql.functions import col

    return col("productId")


def views() -> "Mapping[str, Column]":
    """Fold: the number of views, and the newest name."""
    from pyspark.sql import functions as F

    is_change = F.col("event_type") == PRODUCT
    return {
        "views": F.count(F.when(F.col("event_type") == VIEW, 1)),
        "name": F.coalesce(F.max_by("Product.name", F.when(is_change, F.col("offset"))), F.lit("")),
        "changes": F.count(F.when(is_change, 1)),
    }


def all_views() -> "Mapping[str, Column]":
    """Merge: the sums, and the name of the newest part that has one."""
    from pyspark.sql import functions as F

    has_name = F.col("changes") > 0
    return {
        "views": F.sum("views"),
        "name": F.coalesce(F.max_by("name", F.when(has_name, F.col("source_offset"))), F.lit("")),
        "changes": F.sum("changes"),
    }


DECLARATIONS = [
    ReadModel(
        name="product-views",
        source_topic="product-views",
        event_types=(VIEW, PRODUCT),
        key=product,
        state=(
            StateField("views", "long", "Number of views."),
            StateField("name", "string", "Name of the product; empty until the catalogue has one."),
            StateField("changes", "long", "Number of entries that the catalogue has had for the product."),
        ),
        folds={1: views},
        merges={1: all_views},
        key_doc="Id of the product.",
    ),
]
