"""A read model of what a route with two versions writes: the sum of each region's deposits."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.read_model import ReadModel, StateField, decimal_type

if TYPE_CHECKING:
    from pyspark.sql import Column


def region() -> "Column":
    """Key: the region."""
    from pyspark.sql.functions import col

    return col("region")


def total() -> "Mapping[str, Column]":
    """Fold: the sum of the deposits."""
    from pyspark.sql import functions as F

    return {"total": F.sum("amount")}


DECLARATIONS = [
    ReadModel(
        name="regions",
        source_topic="regional-deposits",
        event_types=("RegionalDeposit",),
        key=region,
        state=(StateField("total", decimal_type(28, 2), "Their sum."),),
        folds={1: total},
    ),
]
