"""The emission `notifications`: one notification for each invoice or cancellation, with the points of the card after it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.emission import Emission

from .model import earned_points

if TYPE_CHECKING:
    from pyspark.sql import Column


def notification(revision: int) -> "Mapping[str, Column]":
    """The fields of a Notification, at the rate of a fold revision; `state` is the card's state after the event."""
    from pyspark.sql.functions import col

    return {
        "id": col("id"),
        "occurredOn": col("occurredOn"),
        "customerCardNo": col("cardNumber"),
        "invoiceNumber": col("invoiceNumber"),
        "kind": col("kind"),
        "totalAmount": col("amount"),
        "earnedLoyaltyPoints": earned_points(revision),
        "totalLoyaltyPoints": col("state.points"),
    }


DECLARATIONS = [
    Emission(
        name="notifications",
        read_model="loyalty",
        output_topic="loyalty-management-service",
        output_type="Notification",
        fields=notification,
    ),
]
