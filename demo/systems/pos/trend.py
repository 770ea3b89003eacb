"""The route `trend`: each line item of each invoice as a record of its own, without personal data, for analysts, and its event table."""

from foldlake import EventTable, Latency, Route

OF_INVOICE = ("occurredOn", "invoiceNumber", "storeId", "posId", "customerType", "deliveryType")
OF_ITEM = ("itemCode", "itemDescription", "itemPrice", "itemQty", "totalValue")

# The key is the store, as that of the invoice: line items stay in the order of their invoices, and every output partition has one
# source partition. The code of an item would spread over all partitions what analysts read as a table anyway.
DECLARATIONS = [
    Route(
        name="trend",
        source_topic="pos-invoices",
        event_types=("PosInvoice",),
        each="transform(invoiceLineItems, (item, index) -> struct(item AS item, index AS index))",
        output_topic="trend-records",
        output_type="TrendRecord",
        # The schema makes pseudonyms of card and contact.
        fields={
            "id": "concat_ws('/', id, item.index + 1)",
            **{name: name for name in OF_INVOICE},
            "customer": "customerCardNo",
            "contact": "contactNumber",
            "city": "deliveryAddress.city",
            "state": "deliveryAddress.state",
            "lineNumber": "item.index + 1",
            **{name: f"item.item.{name}" for name in OF_ITEM},
        },
        latency=Latency.SECOND,
    ),
    EventTable(
        name="trend",
        source_topic="trend-records",
        event_type="TrendRecord",
        doc="A line item of an invoice, without personal data.",
    ),
]
