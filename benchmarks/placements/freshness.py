"""How long it takes until a new item is served by every node."""

import time
from collections.abc import Iterator
from decimal import Decimal

from benchmarks.placements.items import Items
from benchmarks.support.deposits import low_latency_producer
from benchmarks.support.lookup_client import NodeConnection

# Ten keys, which are in several partitions.
KEYS = 10


def served_everywhere_ms(items: Items, probes: int) -> Iterator[float]:
    """Append an item to the changelog, and look it up on both nodes in turn until each serves it; yield the milliseconds."""
    producer = low_latency_producer(items.settings.kafka_connection)
    connections = [NodeConnection(port) for port in items.settings.query_ports]
    for number in range(1, probes + 1):
        key = f"fresh-{number % KEYS}"
        expected = f'{{"amount":{number}.00}}'.encode()
        value = items.writer.value(key, Decimal(number), number, number)
        began = time.perf_counter()
        producer.produce(items.writer.topic, key=key.encode(), value=value)
        producer.poll(0)
        for connection in connections:
            while connection.get(f"/api/customers.getBalance?customerId={key}")[1] != expected:
                producer.poll(0)
        yield (time.perf_counter() - began) * 1000
    producer.flush()
    for connection in connections:
        connection.close()
