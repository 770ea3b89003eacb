"""The read model `products`: the newest name and category of each product."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.latency import Latency
from include.declarations.read_model import ReadModel, StateField
from include.settings import Placement

if TYPE_CHECKING:
    from pyspark.sql import Column


def product() -> "Column":
    """Key: the id of the product."""
    from pyspark.sql.functions import col

    return col("productId")


def newest() -> "Mapping[str, Column]":
    """Fold: the fields of the newest change."""
    from pyspark.sql import functions as F

    return {name: F.max_by(name, "offset") for name in ("name", "category")}


def newest_of_parts() -> "Mapping[str, Column]":
    """Merge: the fields of the part with the newest change."""
    from pyspark.sql import functions as F

    return {name: F.max_by(name, "source_offset") for name in ("name", "category")}


DECLARATIONS = [
    ReadModel(
        name="products",
        source_topic="catalogue",
        event_types=("Product",),
        key=product,
        state=(
            StateField("name", "string", "Name of the product."),
            StateField("category", "string", "Its category."),
        ),
        folds={1: newest},
        merges={1: newest_of_parts},
        latency=Latency.SECOND,
        # The global table: every node joins lookups with its own copy.
        placement=Placement.REPLICATED,
        key_doc="Id of the product.",
    ),
]
