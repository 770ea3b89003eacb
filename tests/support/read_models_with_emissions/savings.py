"""A read model with two fold revisions: the savings of each customer, and with the second revision a bonus on each deposit."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.read_model import ReadModel, StateField, decimal_type

if TYPE_CHECKING:
    from pyspark.sql import Column

BONUS_REVISION = 2


def customer() -> "Column":
    """Key: the customer's id."""
    from pyspark.sql.functions import col

    return col("customerId")


def deposits() -> "Mapping[str, Column]":
    """Fold: the sum of the deposits."""
    from pyspark.sql import functions as F

    return {"total": F.sum("amount")}


def deposits_with_bonus() -> "Mapping[str, Column]":
    """Fold: the sum of the deposits, and of one unit for each."""
    from pyspark.sql import functions as F

    return {"total": F.sum(F.col("amount") + F.lit(1))}


DECLARATIONS = [
    ReadModel(
        name="savings",
        source_topic="balance",
        event_types=("FundsAdded",),
        key=customer,
        state=(StateField("total", decimal_type(28, 2), "Their sum."),),
        folds={1: deposits, BONUS_REVISION: deposits_with_bonus},
    ),
]
