"""The route `loyalty`: invoices and cancellations of PRIME customers, keyed by the customer's card instead of the store."""

from foldlake import Route

IS_CANCELLED = "event_type = 'PosInvoiceCancelled'"

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
]
