"""The parts of a latency: when an event was appended to its topic, and when its state arrived in this node's store.

Kafka stores the time of the append with each record. A loader may set that time to whatever it likes. The ends of the topics, which a
node reads every second, say when a record cannot have been there yet.
"""

import time
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, TopicPartition

from include.kafka.log_reading import log_consumer_settings
from include.position import Position
from include.settings import KafkaConnection

# For how many seconds the ends are remembered.
REMEMBERED_ENDS = 120
# Of the clocks of this node and of the program that appended an event.
CLOCK_TOLERANCE_S = 2.0
READ_TIMEOUT_S = 0.5
MAX_FETCH_BYTES = 16_384

RecordLocation = tuple[str, int, int]
"""Topic, partition, offset."""


@dataclass(frozen=True)
class Arrival:
    """The position of an event, and when the state that contains it was committed to the store (Unix s)."""

    position: Position
    at_s: float


class TopicEnds:
    """The ends of partitions, as they were observed lately. Not thread-safe."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, int], deque[tuple[int, float]]] = {}

    def observe(self, topic: str, ends: Mapping[int, int], now_s: float) -> None:
        """Note the end offsets of a topic's partitions at a time (Unix s)."""
        for partition, end in ends.items():
            self._ends.setdefault((topic, partition), deque(maxlen=REMEMBERED_ENDS)).append((end, now_s))

    def absent_at_s(self, location: RecordLocation) -> float | None:
        """Return the latest time at which a record was observed not to be there yet; None if that is not remembered."""
        topic, partition, offset = location
        observed = self._ends.get((topic, partition), ())
        before = bisect_right([end for end, _ in observed], offset)
        return observed[before - 1][1] if before else None

    def is_plausible(self, location: RecordLocation, appended_s: float) -> bool:
        """Whether a record can have been appended at a time (Unix s)."""
        absent_s = self.absent_at_s(location)
        return absent_s is None or appended_s > absent_s - CLOCK_TOLERANCE_S


class RecordTimes:
    """Reads the times of single records. Not thread-safe."""

    def __init__(self, kafka: KafkaConnection) -> None:
        # One record is enough, however many follow it.
        self._consumer = Consumer(
            {
                **log_consumer_settings(kafka),
                "fetch.message.max.bytes": MAX_FETCH_BYTES,
                "queued.min.messages": 1,
            }
        )

    def of(self, locations: Iterable[RecordLocation]) -> dict[RecordLocation, float]:
        """Return the times (Unix s) of the records that are there; of each partition, at most one location may be asked for."""
        wanted = {(topic, partition): offset for topic, partition, offset in locations}
        self._consumer.assign([TopicPartition(*where, offset) for where, offset in wanted.items()])
        found: dict[RecordLocation, float] = {}
        deadline_s = time.monotonic() + READ_TIMEOUT_S
        waiting = set(wanted)
        while waiting and time.monotonic() < deadline_s:
            message = self._consumer.poll(READ_TIMEOUT_S / 10)
            if message is None:
                continue
            where = (str(message.topic()), int(message.partition() or 0))
            waiting.discard(where)
            if message.error() is None and message.offset() == wanted.get(where):
                found[*where, wanted[where]] = message.timestamp()[1] / 1000
        self._consumer.unassign()
        return found

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()
