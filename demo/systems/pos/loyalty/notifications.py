"""The emission `notifications`: one notification for each invoice or cancellation, with the points of the card after it."""

from foldlake import Emission

from .model import earned_points


def notification(revision: int) -> dict[str, str]:
    """The fields of a Notification, at the rate of a fold revision; `state` is the card's state after the event."""
    return {
        "id": "id",
        "occurredOn": "occurredOn",
        "customerCardNo": "cardNumber",
        "invoiceNumber": "invoiceNumber",
        "kind": "kind",
        "totalAmount": "amount",
        "earnedLoyaltyPoints": earned_points(revision),
        "totalLoyaltyPoints": "state.points",
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
