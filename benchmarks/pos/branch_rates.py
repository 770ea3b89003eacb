"""How fast a branch wrote its records, by the times of its records."""

from dataclasses import dataclass

from confluent_kafka import Message

from include.kafka.log_reading import end_offsets, log_consumer, record_at
from include.kafka.topics import admin_client, partition_count
from include.settings import Settings


@dataclass(frozen=True)
class WrittenSpan:
    """The number of a topic's records, and when the first and the last of them was produced, in seconds of the Unix clock."""

    records: int
    first_s: float
    last_s: float

    @property
    def seconds(self) -> float:
        """The time between the two, at least that which the clock of the records can tell."""
        return max(0.001, self.last_s - self.first_s)


def written_span(settings: Settings, topic: str) -> WrittenSpan:
    """Return the span of all records of a topic, which must have some, and no deletions."""
    consumer = log_consumer(settings.kafka_connection)
    partitions = partition_count(admin_client(settings.kafka_connection), topic) or 0
    try:
        ends = end_offsets(consumer, topic, partitions)
        filled = [(partition, end) for partition, end in enumerate(ends) if end]
        first = min(_produced_s(record_at(consumer, topic, partition, 0)) for partition, _ in filled)
        last = max(_produced_s(record_at(consumer, topic, partition, end - 1)) for partition, end in filled)
    finally:
        consumer.close()
    return WrittenSpan(sum(ends), first, last)


def _produced_s(message: Message | None) -> float:
    assert message is not None, "the topic has lost a record"
    return float(message.timestamp()[1]) / 1000
