"""An emission, as a newcomer would add one: each deposit gives a receipt with the customer's savings after it."""

from foldlake import Emission


def receipt(revision: int) -> dict[str, str]:
    """The fields of a receipt."""
    return {
        "id": "id",
        "occurredOn": "occurredOn",
        "customer": "customerId",
        "amount": "amount",
        "deposits": "state.event_count",
        "total": "state.total",
        "revision": f"{revision}",
    }


DECLARATIONS = [
    Emission(
        name="receipts",
        read_model="savings",
        output_topic="receipts",
        output_type="Receipt",
        fields=receipt,
        # No receipt for a deposit of less than one whole unit, which counts nevertheless.
        where="amount >= 1",
    ),
]
