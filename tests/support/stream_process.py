"""For the tests of the stream: appends events, reads the changelog, and kills the driver."""

import subprocess
from collections.abc import Iterable

from confluent_kafka import Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from include.declarations.read_model import ReadModel
from include.kafka.dead_letters import FAILURE_HEADER
from include.kafka.events import Event, EventSerializer, event_key
from include.kafka.log_reading import end_offsets, log_consumer, read_tail
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.state_record import StateRecord, decode_state_record
from include.kafka.topics import ensure_topics, partition_count, source_topics
from include.position import Position
from include.settings import Settings
from stack.launchers.stream_driver import running
from tests.support.waiting import wait_until

READ_TIMEOUT_S = 10.0


def kill_jvm(settings: Settings, process: subprocess.Popen[bytes]) -> None:
    """Kill the driver's JVM with -9 and wait until the whole driver has exited."""
    wait_until(lambda: running(settings.home) is not None, "the driver holds its lock")
    driver = running(settings.home)
    assert driver is not None
    driver.kill()
    process.wait(30)


def make_topics(settings: Settings, source_topic: str) -> None:
    """Create a source topic and its dead-letter topic."""
    admin = AdminClient(settings.kafka_connection.client_settings)
    ensure_topics(
        admin, source_topics(source_topic, settings.topics.partitions), settings.topics.replication_factor
    )


class EventSource:
    """Appends events and invalid records to a source topic, as any Kafka client might."""

    def __init__(self, settings: Settings, topic: str) -> None:
        self.topic = topic
        self.registry = SchemaRegistry(settings.registry.connection)
        self.serializer = EventSerializer(self.registry, topic)
        self._producer = Producer(
            {
                **settings.kafka_connection.client_settings,
                "partitioner": "murmur2_random",
                "enable.idempotence": True,
                "linger.ms": 5,
            }
        )

    def append(self, events: Iterable[Event]) -> None:
        """Append events and wait until the broker has acknowledged them."""
        for event in events:
            self.append_raw(event_key(event), self.serializer.serialize(event))
        self.flush()

    def append_raw(self, key: bytes | None, value: bytes | None) -> None:
        """Append a record unchanged."""
        self._producer.produce(self.topic, key=key, value=value)
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until the broker has acknowledged every record."""
        assert self._producer.flush(90) == 0


def records_of(settings: Settings, topic: str) -> list[Message]:
    """Return every record of a topic, one partition after the other."""
    admin = AdminClient(settings.kafka_connection.client_settings)
    consumer = log_consumer(settings.kafka_connection)
    partitions = partition_count(admin, topic) or 0
    found = [message for partition in range(partitions) for message in read_tail(consumer, topic, partition)]
    consumer.close()
    return found


def states(
    settings: Settings, model: ReadModel, changelog_topic: str, fold_revision: int | None = None
) -> dict[str, StateRecord]:
    """Return the state of each key as a reader of the changelog sees it: a lower event_count never replaces a higher one.

    A removed key has none.
    """
    schema = model.state_schema_of(fold_revision or model.newest_fold_revision)
    newest: dict[str, StateRecord] = {}
    for message in records_of(settings, changelog_topic):
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        if value is None:
            is_written = FAILURE_HEADER not in dict(message.headers() or ())
            assert not is_written or model.ended is not None or model.expires is not None
            newest.pop(key.decode(), None)
            continue
        record = decode_state_record(value, lambda _id: schema)
        current = newest.get(key.decode())
        if current is None or record.event_count >= current.event_count:
            newest[key.decode()] = record
    return newest


class ChangelogProgress:
    """Counts the events that a changelog contains, for tests that poll it: each call reads only the records since the last call.

    The records must be of the newest fold revision; a key counts with its highest event_count.
    """

    def __init__(self, settings: Settings, model: ReadModel, changelog_topic: str) -> None:
        kafka = settings.kafka_connection
        self._topic = changelog_topic
        self._schema = model.state_schema
        self._admin = AdminClient(kafka.client_settings)
        self._consumer = log_consumer(kafka)
        self._next: dict[int, int] = {}
        self._counts: dict[str | bytes | None, int] = {}

    def event_count(self) -> int:
        """Return the sum of all keys' event_count; 0 if the topic does not exist yet.

        Raises KafkaUnavailableError when no broker answers in time.
        """
        partitions = partition_count(self._admin, self._topic) or 0
        for partition, end in enumerate(end_offsets(self._consumer, self._topic, partitions)):
            if end > self._next.get(partition, 0):
                self._read(partition, end)
        return sum(self._counts.values())

    def _read(self, partition: int, end: int) -> None:
        start = self._next.get(partition, 0)
        self._consumer.assign([TopicPartition(self._topic, partition, start)])
        while self._next.get(partition, 0) < end:
            message = self._consumer.poll(READ_TIMEOUT_S)
            if message is None:
                break
            error = message.error()
            if error is None:
                self._count(message)
                self._next[partition] = (message.offset() or 0) + 1
            elif error.name() == "_PARTITION_EOF":
                # The last offsets of a partition may have no records.
                self._next[partition] = end
        self._consumer.unassign()

    def _count(self, message: Message) -> None:
        value = message.value()
        position = (
            Position.of_removal(message.headers())
            if value is None
            else decode_state_record(value, lambda _id: self._schema).position
        )
        assert position is not None
        self._counts[message.key()] = max(position.event_count, self._counts.get(message.key(), 0))
