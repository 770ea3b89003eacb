"""A route: each deposit of at least one whole unit is written under its region."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.kinds.route import Route

if TYPE_CHECKING:
    from pyspark.sql import Column

REGIONS = 37
RULE = 1


def region() -> "Column":
    """The region of a deposit's customer; customers of one region are in all partitions of the source."""
    from pyspark.sql.functions import col, concat, crc32, lit

    return concat(lit("region-"), (crc32(col("customerId").cast("binary")) % REGIONS).cast("string"))


def deposit() -> "Mapping[str, Column]":
    """The fields of a regional deposit."""
    from pyspark.sql.functions import col, lit

    return {
        "id": col("id"),
        "occurredOn": col("occurredOn"),
        "region": region(),
        "amount": col("amount"),
        "rule": lit(RULE),
    }


def is_large_enough() -> "Column":
    """Only deposits of at least one whole unit."""
    from pyspark.sql.functions import col

    return col("amount") >= 1


DECLARATIONS = [
    Route(
        name="regional",
        source_topic="balance",
        event_types=("FundsAdded",),
        where=is_large_enough,
        output_topic="regional-deposits",
        output_type="RegionalDeposit",
        fields=deposit,
    ),
]
