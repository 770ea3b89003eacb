"""The emission `popular-products`: one alert for each product that reaches 1,000 views, with its name."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.emission import Emission

from .model import PRODUCT, VIEW

if TYPE_CHECKING:
    from pyspark.sql import Column

THRESHOLD = 1_000


def becomes_popular() -> "Column":
    """Whether the event completes an alert: the view that reaches the threshold, or, if there was no name then, the first name.

    Each product satisfies one of the two once: views and changes grow by one.
    """
    from pyspark.sql.functions import col

    reaches = (col("event_type") == VIEW) & (col("state.views") == THRESHOLD) & (col("state.changes") >= 1)
    is_named = (
        (col("event_type") == PRODUCT) & (col("state.changes") == 1) & (col("state.views") >= THRESHOLD)
    )
    return reaches | is_named


def popular_product(_revision: int) -> "Mapping[str, Column]":
    """The fields of a PopularProduct."""
    from pyspark.sql.functions import col

    return {
        "occurredOn": col("occurredOn"),
        "productId": col("productId"),
        "name": col("state.name"),
        "views": col("state.views"),
    }


DECLARATIONS = [
    Emission(
        name="popular-products",
        read_model="product-views",
        output_topic="popular-products",
        output_type="PopularProduct",
        fields=popular_product,
        where=becomes_popular,
    ),
]
