"""A read model whose key is not that of its events: what all customers together paid in on each day."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.api import Command, Lookup
from include.declarations.command_fields import DecimalField, TextField
from include.declarations.latency import Latency
from include.declarations.read_model import ReadModel, StateField, decimal_type

if TYPE_CHECKING:
    from pyspark.sql import Column


def day() -> "Column":
    """Key: the day, such as `2026-01-31`. The events of one day are those of many customers."""
    from pyspark.sql.functions import col, date_format

    return date_format(col("occurredOn"), "yyyy-MM-dd")


def deposits() -> "Mapping[str, Column]":
    """Fold: the number and the sum of the day's deposits."""
    from pyspark.sql import functions as F

    return {"deposits": F.count("amount"), "total": F.sum("amount")}


READ_MODEL = ReadModel(
    name="daily-deposits",
    source_topic="balance",
    event_types=("FundsAdded",),
    key=day,
    rekey=True,
    # In batches, as is the route that gives the events their key: neither needs task slots of its own.
    latency=Latency.SECOND,
    state=(
        StateField("deposits", "long", "Number of deposits."),
        StateField("total", decimal_type(28, 2), "Their sum."),
    ),
    folds={1: deposits},
)
DECLARATIONS = [
    READ_MODEL,
    Lookup("/api/daily-deposits.get", "day", ("deposits", "total"), example="2026-01-31"),
    Command(
        "/api/daily-deposits.add",
        "FundsAdded",
        (TextField("customerId", max_bytes=256), DecimalField("amount", precision=18, scale=2)),
        {"customerId": "1", "amount": "5.00"},
    ),
]
