"""The read model `loyalty`: the points of each PRIME customer's card, over all stores."""

from foldlake import Lookup, ReadModel, StateField, decimal_type

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


DECLARATIONS = [
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
]
