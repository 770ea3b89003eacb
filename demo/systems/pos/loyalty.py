"""The read model `loyalty`: the points of each PRIME customer's card, over all stores.

With the route that keys invoices and cancellations of PRIME customers by the card instead of the store, and the emission of one
notification for each of them, with the points of the card after it.
"""

from foldlake import Emission, Lookup, ReadModel, Route, StateField, decimal_type

IS_CANCELLED = "event_type = 'PosInvoiceCancelled'"

# Fold revision -> points for each unit of the invoice's total. Another rate is a further revision; never edit one.
RATES = {1: "0.02"}


def earned_points(revision: int) -> str:
    """The points of one event: its amount times the rate, rounded to 2 decimals, half away from zero.

    A cancellation, whose amount is below zero, takes exactly the points that its invoice gave.
    """
    return f"round(amount * {RATES[revision]}, 2)"


def fold(revision: int) -> dict[str, str]:
    """The sums of points and amounts, and the numbers of purchases and cancellations."""
    return {
        "points": f"sum({earned_points(revision)})",
        "spent": "sum(amount)",
        "invoices": "count(CASE WHEN kind = 'PURCHASE' THEN 1 END)",
        "cancellations": "count(CASE WHEN kind = 'CANCELLATION' THEN 1 END)",
    }


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
    Route(
        name="loyalty",
        source_topic="pos-invoices",
        event_types=("PosInvoice", "PosInvoiceCancelled"),
        where="customerType = 'PRIME'",
        output_topic="loyalty-invoices",
        output_type="LoyaltyInvoice",
        fields={
            "id": "id",
            "occurredOn": "occurredOn",
            "cardNumber": "customerCardNo",
            "invoiceNumber": "invoiceNumber",
            "storeId": "storeId",
            # Below zero for a cancellation.
            "amount": f"CASE WHEN {IS_CANCELLED} THEN -totalAmount ELSE totalAmount END",
            "kind": f"CASE WHEN {IS_CANCELLED} THEN 'CANCELLATION' ELSE 'PURCHASE' END",
        },
    ),
    ReadModel(
        name="loyalty",
        source_topic="loyalty-invoices",
        event_types=("LoyaltyInvoice",),
        key="cardNumber",
        state=(
            StateField(
                "points", decimal_type(28, 2), "Points of all invoices, less those of cancelled ones."
            ),
            StateField("spent", decimal_type(28, 2), "Sum of all invoices, less cancelled ones."),
            StateField("invoices", "long", "Number of invoices, cancelled ones included."),
            StateField("cancellations", "long", "Number of cancelled invoices."),
        ),
        folds={revision: fold(revision) for revision in RATES},
        key_doc="The number of the customer's card.",
    ),
    Lookup(
        "/api/loyalty.getPoints",
        parameter="cardNumber",
        fields=("points", "spent", "invoices", "cancellations"),
        max_key_bytes=64,
        example="1791412060619272",
    ),
    Emission(
        name="notifications",
        read_model="loyalty",
        output_topic="loyalty-management-service",
        output_type="Notification",
        fields=notification,
    ),
]
