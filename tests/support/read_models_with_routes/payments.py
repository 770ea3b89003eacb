"""A route that reads JSON: each payment that a terminal has logged becomes a posting to its account, beside those of the deposits."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.event_types.topic_events import EventFormat
from include.declarations.kinds.route import Route

if TYPE_CHECKING:
    from pyspark.sql import Column


def posting() -> "Mapping[str, Column]":
    """The fields of a posting; an error for the account `closed`."""
    from pyspark.sql.functions import col, lit, raise_error, when

    account = when(col("account") == "closed", raise_error(lit("closed"))).otherwise(col("account"))
    return {
        "id": col("id"),
        "occurredOn": col("occurredOn"),
        "account": account,
        "amount": col("amount"),
        "customer": col("terminal"),
    }


DECLARATIONS = [
    Route(
        name="payments",
        source_topic="terminal-log",
        source_format=EventFormat.JSON,
        event_types=("CardPayment",),
        output_topic="postings",
        output_type="Posting",
        fields=posting,
    ),
]
