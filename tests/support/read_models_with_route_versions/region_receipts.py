"""An emission: each regional deposit gives a receipt with the region's total after it, and the rule of the route's version."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.kinds.emission import Emission

if TYPE_CHECKING:
    from pyspark.sql import Column


def receipt(_revision: int) -> "Mapping[str, Column]":
    """The fields of a receipt."""
    from pyspark.sql.functions import col

    return {
        "id": col("id"),
        "occurredOn": col("occurredOn"),
        "region": col("region"),
        "amount": col("amount"),
        "deposits": col("state.event_count"),
        "total": col("state.total"),
        "rule": col("rule"),
    }


DECLARATIONS = [
    Emission(
        name="region-receipts",
        read_model="regions",
        output_topic="region-receipts",
        output_type="RegionReceipt",
        fields=receipt,
    ),
]
