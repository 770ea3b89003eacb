"""The route `shipments`: each invoice with home delivery, whole, for the shipment service."""

from typing import TYPE_CHECKING

from include.declarations.route import Route

if TYPE_CHECKING:
    from pyspark.sql import Column


def is_delivered() -> "Column":
    """Only invoices that are delivered to an address."""
    from pyspark.sql.functions import col

    return col("deliveryType") == "HOME-DELIVERY"


# Neither `output_type` nor `fields`: the event is written as it is, under its own key and schema.
DECLARATIONS = [
    Route(
        name="shipments",
        source_topic="pos-invoices",
        event_types=("PosInvoice",),
        where=is_delivered,
        output_topic="shipment-service",
    ),
]
