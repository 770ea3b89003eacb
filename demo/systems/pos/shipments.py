"""The route `shipments`: each invoice with home delivery, whole, for the shipment service."""

from foldlake import Route

# Neither `output_type` nor `fields`: the event is written as it is, under its own key and schema.
DECLARATIONS = [
    Route(
        name="shipments",
        source_topic="pos-invoices",
        event_types=("PosInvoice",),
        where="deliveryType = 'HOME-DELIVERY'",
        output_topic="shipment-service",
    ),
]
