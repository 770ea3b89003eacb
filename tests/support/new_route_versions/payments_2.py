"""Version 2 of the route `payments`: payments count twice."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.event_types.topic_events import EventFormat
from include.declarations.kinds.route import Route

if TYPE_CHECKING:
    from pyspark.sql import Column


def posting() -> "Mapping[str, Column]":
    """The fields of a posting."""
    from pyspark.sql.functions import col

    return {
        "id": col("id"),
        "occurredOn": col("occurredOn"),
        "account": col("account"),
        "amount": (col("amount") * 2).cast("decimal(18, 2)"),
        "customer": col("terminal"),
    }


DECLARATIONS = [
    Route(
        name="payments",
        version=2,
        source_topic="terminal-log",
        source_format=EventFormat.JSON,
        event_types=("CardPayment",),
        output_topic="postings",
        output_type="Posting",
        fields=posting,
    ),
]
