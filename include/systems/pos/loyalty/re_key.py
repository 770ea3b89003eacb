"""The route `loyalty`: invoices and cancellations of PRIME customers, keyed by the customer's card instead of the store."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.route import Route

if TYPE_CHECKING:
    from pyspark.sql import Column


def is_prime() -> "Column":
    """Only customers who collect points."""
    from pyspark.sql.functions import col

    return col("customerType") == "PRIME"


def loyalty_invoice() -> "Mapping[str, Column]":
    """The fields of a LoyaltyInvoice: the amount of a cancellation is below zero."""
    from pyspark.sql.functions import col, lit, when

    is_cancelled = col("event_type") == "PosInvoiceCancelled"
    return {
        "id": col("id"),
        "occurredOn": col("occurredOn"),
        "cardNumber": col("customerCardNo"),
        "invoiceNumber": col("invoiceNumber"),
        "storeId": col("storeId"),
        "amount": when(is_cancelled, -col("totalAmount")).otherwise(col("totalAmount")),
        "kind": when(is_cancelled, lit("CANCELLATION")).otherwise(lit("PURCHASE")),
    }


DECLARATIONS = [
    Route(
        name="loyalty",
        source_topic="pos-invoices",
        event_types=("PosInvoice", "PosInvoiceCancelled"),
        where=is_prime,
        output_topic="loyalty-invoices",
        output_type="LoyaltyInvoice",
        fields=loyalty_invoice,
    ),
]
