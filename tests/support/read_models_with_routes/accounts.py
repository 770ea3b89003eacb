"""A read model of what a route writes: the number and the sum of each account's postings, over all customers."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.read_model import ReadModel, StateField, decimal_type

if TYPE_CHECKING:
    from pyspark.sql import Column


def account() -> "Column":
    """Key: the account."""
    from pyspark.sql.functions import col

    return col("account")


def total() -> "Mapping[str, Column]":
    """Fold: the number and the sum of the postings."""
    from pyspark.sql import functions as F

    return {"postings": F.count("amount"), "total": F.sum("amount")}


DECLARATIONS = [
    ReadModel(
        name="accounts",
        source_topic="postings",
        event_types=("Posting",),
        key=account,
        state=(
            StateField("postings", "long", "Number of postings."),
            StateField("total", decimal_type(28, 2), "Their sum."),
        ),
        folds={1: total},
    ),
]
