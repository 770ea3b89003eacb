"""When each event was produced, and when the first state record that contains it arrived at the broker.

The changelog must have every record, with the broker's timestamps. Nothing observes the stream while it is measured.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import Consumer, Message
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from benchmarks.support.deposits import BALANCE, CHANGELOG
from include.kafka.log_reading import end_offsets, log_consumer, read_tail
from include.kafka.state_record import decode_state_record
from include.kafka.topics import admin_client
from include.position import Offsets
from include.settings import Settings


@dataclass(frozen=True)
class TopicEnds:
    """The end offsets of the source and the changelog at a moment."""

    source: Offsets
    changelog: Offsets


@dataclass(frozen=True)
class EventTimes:
    """When an event was produced, and when the first state record with it was written, in ms of the Unix clock."""

    sent_ms: int
    written_ms: int

    @property
    def latency_ms(self) -> float:
        """The time between the two."""
        return float(self.written_ms - self.sent_ms)


def appended_ms(record: Message) -> int:
    """Return when the broker appended a state record."""
    return int(record.timestamp()[1])


def topic_ends(settings: Settings, changelog: str = CHANGELOG) -> TopicEnds:
    """Return the present ends of both topics."""
    consumer = log_consumer(settings.kafka_connection)
    partitions = BALANCE.partitions(settings.topics)
    try:
        return TopicEnds(
            Offsets.of_ends(end_offsets(consumer, BALANCE.source_topic, partitions)),
            Offsets.of_ends(end_offsets(consumer, changelog, partitions)),
        )
    finally:
        consumer.close()


def event_times(
    settings: Settings,
    begin: TopicEnds,
    end: TopicEnds,
    changelog: str = CHANGELOG,
    written_ms: Callable[[Message], int] = appended_ms,
) -> list[EventTimes]:
    """Return the times of each event between two moments, all of which must have been folded by now.

    written_ms: when a state record counts as written.
    """
    consumer = log_consumer(settings.kafka_connection)
    try:
        written: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
        for partition, first in begin.changelog.items():
            for message in _since(consumer, changelog, partition, first):
                record = decode_state_record(message.value() or b"", lambda _id: BALANCE.state_schema)
                written[message.key() or b""].append((record.position.offset, written_ms(message)))
        for records in written.values():
            records.sort()
        found = []
        for partition, first in begin.source.items():
            for message in _since(consumer, BALANCE.source_topic, partition, first):
                offset, records = message.offset() or 0, written[message.key() or b""]
                if offset < end.source.of(partition):
                    _, at_ms = records[bisect_left(records, (offset, 0))]
                    found.append(EventTimes(message.timestamp()[1], at_ms))
        return found
    finally:
        consumer.close()


def _since(consumer: Consumer, topic: str, partition: int, first: int) -> list[Message]:
    """Return the records of a partition from an offset on."""
    (end,) = end_offsets(consumer, topic, partition + 1)[partition:]
    return list(read_tail(consumer, topic, partition, end - first)) if end > first else []


def keep_every_record(settings: Settings, changelog: str = CHANGELOG) -> None:
    """Have the broker keep every record of a changelog, with its own timestamp."""
    entries = {"cleanup.policy": "delete", "message.timestamp.type": "LogAppendTime"}
    resource = ConfigResource(
        ResourceType.TOPIC,
        changelog,
        incremental_configs=[
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in entries.items()
        ],
    )
    # Its futures fail once the client is gone.
    admin = admin_client(settings.kafka_connection)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()
