"""A second read model, in one new file: how often and how much each customer paid in on each day."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.read_model import ReadModel, StateField, decimal_type

if TYPE_CHECKING:
    from pyspark.sql import Column


def customer_and_day() -> "Column":
    """Key: `<customer id>/<day>`."""
    from pyspark.sql.functions import col, concat_ws, date_format

    return concat_ws("/", col("customerId"), date_format(col("occurredOn"), "yyyy-MM-dd"))


def deposits() -> "Mapping[str, Column]":
    """Fold: the number and the largest of the day's deposits."""
    from pyspark.sql import functions as F

    return {"deposits": F.count("amount"), "largest": F.max("amount")}


DECLARATIONS = [
    ReadModel(
        name="deposits-per-day",
        source_topic="balance",
        event_types=("FundsAdded",),
        key=customer_and_day,
        state=(
            StateField("deposits", "long", "Number of deposits."),
            StateField("largest", decimal_type(18, 2), "The largest of them."),
        ),
        folds={1: deposits},
    ),
]
