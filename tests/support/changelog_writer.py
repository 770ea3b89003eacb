"""Writes state records to a changelog instead of the stream driver, to test the changelog's readers without a driver."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

import fastavro
from confluent_kafka import Producer, murmur2
from confluent_kafka.admin import AdminClient

from include.declarations.read_model import ReadModel
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import COMPACTED, FOREVER, Topic, changelog_topic, ensure_topics
from include.kafka.wire_format import header
from include.position import Position
from include.read_models.balance.model import READ_MODEL
from include.settings import Settings
from include.versions.registry import VersionRegistry
from include.versions.version_record import first_version
from tests.support.waiting import wait_until

FLUSH_TIMEOUT_S = 60
OCCURRED_ON = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@dataclass
class ChangelogWriter:
    """Writes the changelog of one version of a read model; also creates its topics and registers it."""

    settings: Settings
    version: int = 1
    model: ReadModel = READ_MODEL

    def __post_init__(self) -> None:
        """Connect to Kafka."""
        self.topic = changelog_topic(self.model.name, self.version)
        self._admin = AdminClient(self.settings.kafka_connection.client_settings)
        self._producer = Producer(
            {
                **self.settings.kafka_connection.client_settings,
                "partitioner": "murmur2_random",
                "acks": "all",
                "queue.buffering.max.messages": 1_000_000,
            }
        )
        self._schema = fastavro.parse_schema(self.model.state_schema.parsed())
        self._header = b""

    def make_topics(self) -> None:
        """Create the source topic and the changelog."""
        topics = [
            Topic(self.model.source_topic, self.settings.topics.partitions, FOREVER),
            Topic(self.topic, self.settings.topics.partitions, COMPACTED),
        ]
        ensure_topics(self._admin, topics, 1)

    def delete_topic(self) -> None:
        """Delete the changelog, and wait until it is gone."""
        self._admin.delete_topics([self.topic])[self.topic].result(FLUSH_TIMEOUT_S)
        wait_until(lambda: self.topic not in self._admin.list_topics(timeout=10).topics, "the topic is gone")

    def register_live(self) -> None:
        """Append the first record of the version registry."""
        registry = VersionRegistry(self.settings.kafka_connection)
        registry.ensure_topic()
        if self.model.name not in registry.read():
            registry.compare_and_set(first_version(self.model.name, self.model.newest_fold_revision), 0)

    def value(
        self, customer: str, amount: Decimal, event_count: int, source_offset: int, **further: object
    ) -> bytes:
        """Return the bytes of a state record; `further` are the state's fields other than `amount`."""
        if not self._header:
            schema_id = SchemaRegistry(self.settings.registry.connection).register(
                self.topic, self.model.state_schema
            )
            self._header = header(schema_id)
        buffer = io.BytesIO()
        buffer.write(self._header)
        record = {
            "amount": amount,
            "event_count": event_count,
            "source_partition": murmur2(customer.encode(), self.settings.topics.partitions),
            "source_offset": source_offset,
            "occurred_on": OCCURRED_ON,
            **further,
        }
        fastavro.schemaless_writer(buffer, self._schema, record)
        return buffer.getvalue()

    def write(
        self,
        customer: str,
        amount: Decimal,
        event_count: int = 1,
        source_offset: int = 0,
        **further: object,
    ) -> None:
        """Append a state record; `flush` waits for the acknowledgement."""
        self.write_raw(customer.encode(), self.value(customer, amount, event_count, source_offset, **further))

    def remove(self, key: str, position: Position) -> None:
        """Append a removal with the position of the key's newest event."""
        self.write_raw(key.encode(), None, position.removal_headers())

    def write_raw(
        self, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, str | bytes | None]] = ()
    ) -> None:
        """Append a record with arbitrary bytes."""
        while True:
            try:
                self._producer.produce(self.topic, key=key, value=value, headers=list(headers))
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def flush(self) -> None:
        """Wait until the broker has acknowledged every record."""
        assert self._producer.flush(FLUSH_TIMEOUT_S) == 0
