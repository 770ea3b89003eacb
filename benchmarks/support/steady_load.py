"""Deposits produced at a constant rate."""

import random
import time

from benchmarks.support.deposits import BALANCE, Deposits, low_latency_producer
from include.settings import Settings

CUSTOMERS = 10_000
TICK_S = 0.005


class SteadyLoad:
    """Produces at a constant rate, in ticks, at little cost."""

    def __init__(self, settings: Settings, customers: int = CUSTOMERS) -> None:
        self._customers = customers
        self.deposits = Deposits(settings, customers)
        self._random = random.Random(1)
        self._producer = low_latency_producer(settings.kafka_connection)

    def run(self, events_per_s: int, seconds: float) -> None:
        """Produce for this time."""
        began_s = time.monotonic()
        sent = 0
        while (elapsed_s := time.monotonic() - began_s) < seconds:
            due = int(elapsed_s * events_per_s)
            for number in self._random.choices(range(self._customers), k=due - sent):
                self._producer.produce(
                    BALANCE.source_topic, key=self.deposits.keys[number], value=self.deposits.values[number]
                )
                self.deposits.appended[number] += 1
            sent = due
            self._producer.poll(0)
            time.sleep(TICK_S)
        assert self._producer.flush(30) == 0
