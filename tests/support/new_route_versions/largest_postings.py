"""A second read model of what the routes to `postings` write: the largest posting of each account."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.read_model import ReadModel, StateField, decimal_type

if TYPE_CHECKING:
    from pyspark.sql import Column


def account() -> "Column":
    """Key: the account."""
    from pyspark.sql.functions import col

    return col("account")


def largest() -> "Mapping[str, Column]":
    """Fold: the largest posting."""
    from pyspark.sql import functions as F

    return {"largest": F.max("amount")}


DECLARATIONS = [
    ReadModel(
        name="largest-postings",
        source_topic="postings",
        event_types=("Posting",),
        key=account,
        state=(StateField("largest", decimal_type(18, 2), "The largest posting."),),
        folds={1: largest},
    ),
]
