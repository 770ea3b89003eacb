"""The product catalogue of the shop: `python -m demo.logs.catalogue product-1 "New name"` gives a product another name."""

import sys
from collections.abc import Iterable
from datetime import UTC, datetime

from demo.appending import append_missing, load_lock
from demo.logs.lines import PRODUCTS, START, product_id
from include.declarations.load import load_catalog
from include.kafka.events import GenericEvent
from include.kafka.record_schema import schema_file
from include.kafka.topics import admin_client, ensure_topics
from include.settings import Settings
from include.settings.systems import system_folder

SYSTEM = system_folder("logs")
TOPIC = "products"
PRODUCT = schema_file(SYSTEM / "schemas" / "Product.avsc")
CATEGORIES = ("lamps", "chairs", "tables", "shelves", "carpets")
MATERIALS = ("oak", "glass", "steel", "linen")


def product(identity: str, name: str, category: str, at: datetime) -> GenericEvent:
    """Return an entry of the catalogue as of this time."""
    return GenericEvent(
        PRODUCT, {"occurredOn": at, "productId": identity, "name": name, "category": category}
    )


def name_of(number: int) -> str:
    """Return the first name of a product, numbered from 1."""
    return f"{MATERIALS[number % len(MATERIALS)]} {CATEGORIES[number % len(CATEGORIES)][:-1]} {number}"


def first_entries(last: int = PRODUCTS) -> list[GenericEvent]:
    """Return the first entry of each product up to this number."""
    return [
        product(product_id(number), name_of(number), CATEGORIES[number % len(CATEGORIES)], START)
        for number in range(1, last + 1)
    ]


def append_entries(settings: Settings, entries: Iterable[GenericEvent]) -> int:
    """Append entries to the catalogue's topic, and return their number. Raises KafkaUnavailableError, LoadRunningError."""
    with load_lock(settings.home):
        (route,) = (one for one in load_catalog((SYSTEM,)).flows if one.source_topic == TOPIC)
        admin = admin_client(settings.kafka_connection, log_level=0)
        ensure_topics(admin, route.topics(settings.topics), settings.topics.replication_factor)
        return append_missing(settings, TOPIC, entries, 0)


if __name__ == "__main__":
    renamed = product(sys.argv[1], sys.argv[2], "renamed", datetime.now(UTC))
    append_entries(Settings(), [renamed])
