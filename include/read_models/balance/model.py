"""The read model `balance`: how much money each customer has."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.read_model import ReadModel, StateField, decimal_type

if TYPE_CHECKING:
    from pyspark.sql import Column


def customer() -> "Column":
    """Key: the customer's id."""
    from pyspark.sql.functions import col

    return col("customerId")


def funds() -> "Mapping[str, Column]":
    """Fold: the sum of added funds minus the sum of withdrawn funds."""
    from pyspark.sql import functions as F

    amount = F.when(F.col("event_type") == "FundsWithdrawn", -F.col("amount")).otherwise(F.col("amount"))
    return {"amount": F.sum(amount)}


def all_funds() -> "Mapping[str, Column]":
    """Merge: the sum of the balances of parts of the events."""
    from pyspark.sql import functions as F

    return {"amount": F.sum("amount")}


READ_MODEL = ReadModel(
    name="balance",
    source_topic="balance",
    event_types=("FundsAdded", "FundsWithdrawn"),
    key=customer,
    state=(StateField("amount", decimal_type(38, 2), "Balance in the account's currency."),),
    folds={1: funds},
    merges={1: all_funds},
    key_doc="The customer's id.",
)
DECLARATIONS = [READ_MODEL]
