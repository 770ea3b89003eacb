"""Reading the newest dead letters of a source topic, each with its origin and its reason."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime

from confluent_kafka import Message

from include.kafka.log_reading import end_offsets, log_consumer, read_tail
from include.kafka.topics import admin_client, dead_letter_topic, partition_count


@dataclass(frozen=True)
class DeadLetter:
    """A source record that could not be decoded, with unchanged key and value; `written_at` is the dead letter's time."""

    written_at: datetime
    reason: str
    source_topic: str
    source_partition: int
    source_offset: int
    key: bytes | None
    value: bytes | None

    @classmethod
    def from_message(cls, message: Message) -> "DeadLetter":
        """Convert a record of a dead-letter topic."""
        headers = {k: v for k, v in dict(message.headers() or []).items() if isinstance(v, bytes)}
        return cls(
            written_at=datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC),
            reason=headers.get("reason", b"none given").decode(),
            source_topic=headers.get("source_topic", b"").decode(),
            source_partition=int(headers.get("source_partition", -1)),
            source_offset=int(headers.get("source_offset", -1)),
            key=message.key(),
            value=message.value(),
        )


@dataclass(frozen=True)
class DeadLetters:
    """The newest dead letters of one source topic, oldest first, and their total number."""

    source_topic: str
    total: int
    newest: tuple[DeadLetter, ...]

    def by_reason(self) -> dict[str, int]:
        """Return reason -> number of records in `newest`, the most frequent reason first."""
        return dict(Counter(record.reason for record in self.newest).most_common())


def read_dead_letters(bootstrap_servers: str, source_topic: str, limit: int) -> DeadLetters | None:
    """Return the newest `limit` dead letters of a source topic, or None when it has no dead-letter topic.

    Raises KafkaUnavailableError when no broker responds.
    """
    topic = dead_letter_topic(source_topic)
    admin = admin_client(bootstrap_servers)
    partitions = partition_count(admin, topic)
    if partitions is None:
        return None
    consumer = log_consumer(bootstrap_servers)
    try:
        # The writer uses no transactions, so an end offset is the number of records written.
        total = sum(end_offsets(consumer, topic, partitions))
        records = [
            DeadLetter.from_message(message)
            for partition in range(partitions)
            for message in read_tail(consumer, topic, partition, records=limit)
        ]
    finally:
        consumer.close()
    records.sort(key=lambda record: (record.written_at, record.source_partition, record.source_offset))
    return DeadLetters(source_topic, total, tuple(records[-limit:]))
