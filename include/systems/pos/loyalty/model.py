"""The read model `loyalty`: the points of each PRIME customer's card, over all stores."""

from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

from include.declarations.read_model import ReadModel, StateField, decimal_type

if TYPE_CHECKING:
    from pyspark.sql import Column

# Fold revision -> points for each unit of the invoice's total. Another rate is a further revision; never edit one.
RATES = {1: Decimal("0.02")}


def earned_points(revision: int) -> "Column":
    """The points of one event: its amount times the rate, rounded to 2 decimals, half away from zero.

    A cancellation, whose amount is below zero, takes exactly the points that its invoice gave.
    """
    from pyspark.sql.functions import col, lit
    from pyspark.sql.functions import round as rounded

    return rounded(col("amount") * lit(RATES[revision]), 2)


def card() -> "Column":
    """Key: the number of the customer's card."""
    from pyspark.sql.functions import col

    return col("cardNumber")


def points(revision: int) -> "Mapping[str, Column]":
    """Fold: the sums of points and amounts, and the numbers of purchases and cancellations."""
    from pyspark.sql import functions as F

    return {
        "points": F.sum(earned_points(revision)),
        "spent": F.sum("amount"),
        "invoices": F.count(F.when(F.col("kind") == "PURCHASE", 1)),
        "cancellations": F.count(F.when(F.col("kind") == "CANCELLATION", 1)),
    }


def all_points() -> "Mapping[str, Column]":
    """Merge: the sums of all fields."""
    from pyspark.sql import functions as F

    return {name: F.sum(name) for name in ("points", "spent", "invoices", "cancellations")}


DECLARATIONS = [
    ReadModel(
        name="loyalty",
        source_topic="loyalty-invoices",
        event_types=("LoyaltyInvoice",),
        key=card,
        state=(
            StateField(
                "points", decimal_type(28, 2), "Points of all invoices, less those of cancelled ones."
            ),
            StateField("spent", decimal_type(28, 2), "Sum of all invoices, less cancelled ones."),
            StateField("invoices", "long", "Number of invoices, cancelled ones included."),
            StateField("cancellations", "long", "Number of cancelled invoices."),
        ),
        folds={revision: partial(points, revision) for revision in RATES},
        merges=dict.fromkeys(RATES, all_points),
        key_doc="The number of the customer's card.",
    ),
]
