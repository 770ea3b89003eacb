"""Periodic emissions: a thread of the driver for each, without a query, writes every record of the live version at each tick.

A tick is one Kafka transaction, so readers of committed records get it whole and once, or not at all. A missed tick is not repeated: the
states of that time are unknown by then.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from confluent_kafka import KafkaException, Producer

from include.declarations.kinds.periodic_emission import PeriodicEmission, next_tick
from include.declarations.read_model import ReadModel
from include.errors import KafkaUnavailableError
from include.kafka.dead_letters import ROUTE_HEADER
from include.kafka.events import EventSerializer, GenericEvent
from include.kafka.log_reading import log_consumer
from include.kafka.origins import TICK_HEADER, newest_tick
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.state_record import StateRecord
from include.kafka.topics import admin_client, ensure_topics, partition_count
from include.settings import KafkaConnection, Settings
from include.versions.registry import VersionRegistry
from include.versions.version_record import Version
from spark_jobs.streaming.query_spec import QuerySpec
from spark_jobs.streaming.stream_context import StreamContext
from spark_jobs.streaming.workers.changelog_snapshot import ChangelogSnapshot
from spark_jobs.streaming.workers.driver_worker import DriverWorker

LOG = logging.getLogger(__name__)

RETRY_S = 2.0
TRANSACTION_TIMEOUT_S = 60.0


class PeriodicWriter(DriverWorker):
    """Writes the ticks of one periodic emission until it is stopped."""

    def __init__(self, settings: Settings, emission: PeriodicEmission, model: ReadModel) -> None:
        super().__init__(str(emission), RETRY_S)
        self._settings = settings
        self._emission = emission
        self._model = model
        self._interval_ms = emission.interval_ms(settings.stream)

    def _work(self) -> None:
        """Write ticks. Whether the last one before an error was written is read from the topic."""
        settings, emission = self._settings, self._emission
        kafka, registry = settings.kafka_connection, SchemaRegistry(settings.registry.connection)
        admin, consumer = admin_client(kafka), log_consumer(kafka)
        topic = emission.topic_named(emission.output_topic, settings.topics)
        try:
            ensure_topics(admin, [topic], settings.topics.replication_factor)
            partitions = partition_count(admin, topic.name) or topic.partitions
            # First the writer, which ends what an earlier one had begun.
            writer = TickWriter(kafka, emission.name, topic.name)
            written_ms = newest_tick(consumer, topic.name, partitions)
            serializer = EventSerializer(registry, topic.name)
            with VersionRegistry(kafka) as versions:
                live: Version | None = None
                while True:
                    tick_ms = next_tick(round(time.time() * 1000), self._interval_ms, written_ms)
                    if self._is_stopping.wait(max(0.0, tick_ms / 1000 - time.time())):
                        return
                    record = versions.read().get(self._model.name)
                    newest = None if record is None else record.live
                    if newest is None:
                        continue
                    if live is None or newest.changelog_topic != live.changelog_topic:
                        count = partition_count(admin, newest.changelog_topic)
                        if count is None:
                            continue
                        states = ChangelogSnapshot(consumer, registry, newest.changelog_topic, count)
                        live = newest
                    records = self._records(serializer, states.refresh(), tick_ms)
                    number = writer.write(tick_ms, live.number, records)
                    written_ms = tick_ms
                    LOG.debug("periodic emission %s: %d records at %d", emission.name, number, tick_ms)
        finally:
            consumer.close()

    def _records(
        self, serializer: EventSerializer, states: Mapping[bytes, StateRecord], tick_ms: int
    ) -> Iterator[tuple[bytes, bytes]]:
        schema = self._emission.output_schema
        tick = datetime.fromtimestamp(tick_ms / 1000, UTC)
        for key, record in states.items():
            values = self._emission.record(key.decode(), record, tick)
            event = GenericEvent(schema, values)
            yield str(values[str(schema.key_field)]).encode(), serializer.serialize(event)


def query_specs(_context: StreamContext) -> list[QuerySpec]:
    """Return no query."""
    return []


def driver_workers(context: StreamContext) -> list[DriverWorker]:
    """Return a writer for each periodic emission; none is running yet."""
    emissions = context.catalog.outputs_of(PeriodicEmission)
    return [PeriodicWriter(context.settings, one, context.models[one.read_model]) for one in emissions]


class TickWriter:
    """Writes the records of a tick, all of them or none: each tick is a Kafka transaction. Raises KafkaUnavailableError.

    A driver that is killed while it writes a tick leaves an open transaction, which its successor aborts before it reads which tick is the
    newest: consumers that read committed records get each tick whole, and once, or not at all. The transaction also keeps out a predecessor
    that still runs: Kafka refuses what it sends from then on.

    name: of the periodic emission.
    """

    def __init__(self, kafka: KafkaConnection, name: str, topic: str) -> None:
        self._name = name
        self._topic = topic
        self._producer = Producer(
            {
                **kafka.client_settings,
                "transactional.id": f"foldlake-periodic-{name}",
                "transaction.timeout.ms": int(TRANSACTION_TIMEOUT_S * 1000),
                "partitioner": "murmur2_random",
                "linger.ms": 20,
                "compression.type": "lz4",
                "log_level": 3,
            }
        )
        try:
            self._producer.init_transactions(TRANSACTION_TIMEOUT_S)
        except KafkaException as error:
            raise KafkaUnavailableError(f"Cannot start to write {topic}: {error}") from error

    def write(self, tick_ms: int, version: int, records: Iterable[tuple[bytes, bytes]]) -> int:
        """Write the records of a tick, given as keys and values; return their number. version: that of the read model.

        Raises KafkaUnavailableError when the tick could not be written: create another writer then.
        """
        headers = [
            (ROUTE_HEADER, self._name.encode()),
            (TICK_HEADER, str(tick_ms).encode()),
            ("version", str(version).encode()),
        ]
        written = 0
        try:
            self._producer.begin_transaction()
            for key, value in records:
                self._produce(key, value, headers)
                written += 1
            self._producer.commit_transaction(TRANSACTION_TIMEOUT_S)
        except KafkaException as error:
            raise KafkaUnavailableError(
                f"Tick {tick_ms} was not written to {self._topic}: {error}"
            ) from error
        return written

    def _produce(self, key: bytes, value: bytes, headers: list[tuple[str, bytes]]) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value, key, headers=list(headers))
            except BufferError:
                # The producer's queue is full: wait for delivery reports.
                self._producer.poll(0.5)
            else:
                self._producer.poll(0)
                return
