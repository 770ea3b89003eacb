"""An emission, as a newcomer would add one: each deposit gives a receipt with the customer's savings after it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.emission import Emission

if TYPE_CHECKING:
    from pyspark.sql import Column

SMALLEST = 1


def receipt(revision: int) -> "Mapping[str, Column]":
    """The fields of a receipt."""
    from pyspark.sql.functions import col, lit

    return {
        "id": col("id"),
        "occurredOn": col("occurredOn"),
        "customer": col("customerId"),
        "amount": col("amount"),
        "deposits": col("state.event_count"),
        "total": col("state.total"),
        "revision": lit(revision),
    }


def is_large_enough() -> "Column":
    """No receipt for a deposit of less than one whole unit, which counts nevertheless."""
    from pyspark.sql.functions import col

    return col("amount") >= SMALLEST


DECLARATIONS = [
    Emission(
        name="receipts",
        read_model="savings",
        output_topic="receipts",
        output_type="Receipt",
        fields=receipt,
        where=is_large_enough,
    ),
]
