"""Version 2 of the route `regional`: small deposits count as well, large ones do not, and each is one unit less, its fee."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.kinds.route import Route

if TYPE_CHECKING:
    from pyspark.sql import Column

REGIONS = 37
RULE = 2
LARGE = 200


def deposit() -> "Mapping[str, Column]":
    """The fields of a regional deposit, whose region is that of version 1."""
    from pyspark.sql.functions import col, concat, crc32, lit

    number = crc32(col("customerId").cast("binary")) % REGIONS
    return {
        "id": col("id"),
        "occurredOn": col("occurredOn"),
        "region": concat(lit("region-"), number.cast("string")),
        "amount": (col("amount") - lit(1)).cast("decimal(18,2)"),
        "rule": lit(RULE),
    }


def is_not_large() -> "Column":
    """Only deposits of less than 200 units."""
    from pyspark.sql.functions import col

    return col("amount") < LARGE


DECLARATIONS = [
    Route(
        name="regional",
        source_topic="balance",
        event_types=("FundsAdded",),
        where=is_not_large,
        output_topic="regional-deposits",
        output_type="RegionalDeposit",
        fields=deposit,
        version=2,
    ),
]
