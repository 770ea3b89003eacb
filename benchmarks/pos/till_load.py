"""The oldest invoices and cancellations of the tills, produced at a constant rate, and when each was."""

import time
from collections.abc import Sequence

from benchmarks.support.deposits import low_latency_producer
from demo.pos.dataset import read_sales, till_events
from demo.pos.loading import TOPIC
from include.kafka.events import EventSerializer, event_key
from include.kafka.schema_registry import SchemaRegistry
from include.settings import Settings
from tests.support.stream_process import make_topics

TICK_S = 0.002


class TillLoad:
    """Serializes the events of the oldest invoices, and produces them in order.

    ids: of the events. sent_s: when each that was produced so far was, in seconds of the Unix clock.
    """

    def __init__(self, settings: Settings, invoices: int) -> None:
        make_topics(settings, TOPIC)
        sales = read_sales(invoices)
        serializer = EventSerializer(SchemaRegistry(settings.registry.connection), TOPIC)
        events = [occurrence.event(sales) for occurrence in till_events(sales)]
        self.ids = [str(occurrence.event_id(sales)) for occurrence in till_events(sales)]
        self.sent_s: list[float] = []
        self._records = [(event_key(event), serializer.serialize(event)) for event in events]
        self._producer = low_latency_producer(settings.kafka_connection)

    def run(self, events_per_s: float, seconds: float) -> range:
        """Produce for this time, or until the last event; return the numbers of the events."""
        first, began_s = len(self.sent_s), time.monotonic()
        while (elapsed_s := time.monotonic() - began_s) < seconds and len(self.sent_s) < len(self._records):
            due = first + int(elapsed_s * events_per_s)
            self._send(self._records[len(self.sent_s) : due])
            time.sleep(TICK_S)
        assert self._producer.flush(30) == 0
        return range(first, len(self.sent_s))

    def run_rest(self) -> None:
        """Produce all events that are left, at once."""
        self._send(self._records[len(self.sent_s) :])
        assert self._producer.flush(60) == 0

    def _send(self, records: Sequence[tuple[bytes, bytes]]) -> None:
        for key, value in records:
            self._producer.produce(TOPIC, key=key, value=value)
            self.sent_s.append(time.time())
            self._producer.poll(0)
