"""What the data set lacks, made up: personal data of each household, and what happened at the till and after each purchase.

Nothing here is real. Every value is a function of the SHA-256 of a household's or a basket's id, so that each run, on any machine, gives
the same. `oracle.py` states the rules of the values that decide where an invoice goes a second time, in SQL.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

TO_DIGITS = str.maketrans("abcdef", "012345")
# Upper limits of the first digits of a hash: a quarter of the baskets is delivered, one in 200 PRIME invoices is cancelled.
DELIVERED_BELOW = "40"
CANCELLED_BELOW = "0148"
TILLS = 8
REASONS = ("RETURNED", "WRONG PRICE", "ENTERED TWICE", "CARD DECLINED")
STREETS = (
    *("Alder", "Birch", "Cedar", "Chestnut", "Elm", "Hazel", "Hickory", "Juniper"),
    *("Larch", "Linden", "Maple", "Oak", "Poplar", "Rowan", "Spruce", "Willow"),
)
# Invented, like everything here.
CITIES = (
    *(("Amberley Falls", "North Vale"), ("Brackwater", "North Vale"), ("Coldharrow", "North Vale")),
    *(("Dunmere", "East Marsh"), ("Eastwick Ferry", "East Marsh"), ("Fenlow", "East Marsh")),
    *(("Greyhaven", "South Reach"), ("Hollin Cross", "South Reach"), ("Ivybridge Mill", "South Reach")),
    *(("Kestrel Point", "West Lorne"), ("Larkhill Dale", "West Lorne"), ("Mossgate", "West Lorne")),
    *(("Netherby Quay", "Highmoor"), ("Otterford", "Highmoor"), ("Pinefell", "Highmoor")),
    ("Ravensholt", "Highmoor"),
)


def digest(what: str, number: int) -> str:
    """Return the SHA-256 of `<what>/<number>`, in lower-case hexadecimal."""
    return hashlib.sha256(f"{what}/{number}".encode()).hexdigest()


def digits(text: str) -> str:
    """Return hexadecimal digits as decimal ones: a to f become 0 to 5."""
    return text.translate(TO_DIGITS)


@dataclass(frozen=True)
class Person:
    """The made-up customer of a household."""

    household_id: int

    @cached_property
    def card(self) -> str:
        """The number of the customer's card, 16 digits."""
        return digits(digest("card", self.household_id)[:16])

    @cached_property
    def contact(self) -> str:
        """The customer's telephone number, with a country code that no country has."""
        return f"+999-{digits(digest('contact', self.household_id)[:10])}"

    @cached_property
    def address(self) -> dict[str, Any]:
        """The customer's address, as the fields of a DeliveryAddress."""
        found = digest("address", self.household_id)
        city, state = CITIES[int(found[0], 16)]
        return {
            "addressLine": f"{int(found[1:4], 16) + 1} {STREETS[int(found[4], 16)]} Street",
            "city": city,
            "state": state,
            "pinCode": digits(found[5:10]),
            "contactNumber": self.contact,
        }


@dataclass(frozen=True)
class Purchase:
    """What is made up about a basket: its delivery, its till, and whether its invoice is cancelled if the customer is PRIME.

    cancelled_after_days: None if it is never cancelled.
    """

    is_delivered: bool
    till: int
    cashier: int
    cancelled_after_days: int | None
    reason: str


def purchase(basket_id: int) -> Purchase:
    """Return what is made up about a basket."""
    till, cancellation = digest("till", basket_id), digest("cancellation", basket_id)
    return Purchase(
        is_delivered=till[:2] < DELIVERED_BELOW,
        till=int(till[2], 16) % TILLS + 1,
        cashier=int(till[3:5], 16) % (2 * TILLS) + 1,
        cancelled_after_days=int(cancellation[4], 16) + 1 if cancellation[:4] < CANCELLED_BELOW else None,
        reason=REASONS[int(cancellation[5], 16) % len(REASONS)],
    )
