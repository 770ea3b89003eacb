"""Version 2 of the route `postings`: only large deposits become postings."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.kinds.route import Route

if TYPE_CHECKING:
    from pyspark.sql import Column


def accounts() -> "Column":
    """The accounts of a deposit: its day, and the bank."""
    from pyspark.sql.functions import array, col, date_format, lit

    return array(date_format(col("occurredOn"), "yyyy-MM-dd"), lit("bank"))


def posting() -> "Mapping[str, Column]":
    """The fields of a posting; `item` is the account."""
    from pyspark.sql.functions import col, concat_ws

    return {
        "id": concat_ws("/", col("id"), col("item")),
        "occurredOn": col("occurredOn"),
        "account": col("item"),
        "amount": col("amount"),
        "customer": col("customerId"),
    }


def is_deposit() -> "Column":
    """Only deposits of at least ten units."""
    from pyspark.sql.functions import col

    return col("amount") >= 10


DECLARATIONS = [
    Route(
        name="postings",
        version=2,
        source_topic="balance",
        event_types=("FundsAdded",),
        where=is_deposit,
        each=accounts,
        output_topic="postings",
        output_type="Posting",
        fields=posting,
    ),
]
