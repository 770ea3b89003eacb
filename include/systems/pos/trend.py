"""The route `trend`: each line item of each invoice as a record of its own, without personal data, for analysts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from include.declarations.latency import Latency
from include.declarations.route import Route

if TYPE_CHECKING:
    from pyspark.sql import Column


def numbered_items() -> "Column":
    """The line items of an invoice, each with its index, from 0: structs of `item` and `index`."""
    from pyspark.sql.functions import col, struct, transform

    return transform(
        col("invoiceLineItems"), lambda item, index: struct(item.alias("item"), index.alias("index"))
    )


def trend_record() -> "Mapping[str, Column]":
    """The fields of a record; `item` is a line item with its index. The schema makes pseudonyms of card and contact."""
    from pyspark.sql.functions import col, concat_ws

    number = col("item.index") + 1
    invoice = ("occurredOn", "invoiceNumber", "storeId", "posId", "customerType", "deliveryType")
    item = ("itemCode", "itemDescription", "itemPrice", "itemQty", "totalValue")
    return {
        "id": concat_ws("/", col("id"), number),
        **{name: col(name) for name in invoice},
        "customer": col("customerCardNo"),
        "contact": col("contactNumber"),
        "city": col("deliveryAddress.city"),
        "state": col("deliveryAddress.state"),
        "lineNumber": number,
        **{name: col(f"item.item.{name}") for name in item},
    }


# The key is the store, as that of the invoice: line items stay in the order of their invoices, and every output partition has one
# source partition. The code of an item would spread over all partitions what analysts read as a table anyway.
DECLARATIONS = [
    Route(
        name="trend",
        source_topic="pos-invoices",
        event_types=("PosInvoice",),
        each=numbered_items,
        output_topic="trend-records",
        output_type="TrendRecord",
        fields=trend_record,
        latency=Latency.SECOND,
    ),
]
