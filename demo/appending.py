"""Appends a data set's events to the log, each exactly once, also when an earlier load was interrupted."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from include.errors import FoldlakeError, KafkaUnavailableError
from include.files import file_lock
from include.kafka.events import Event, EventSerializer, event_key
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import admin_client, ensure_topics, source_topics
from include.settings import KafkaConnection, Settings

FLUSH_TIMEOUT_S = 60.0
# Delivery reports are handled after this many events; the producer's own queue holds 100,000 records.
POLL_EVERY = 500
# The time of a record whose producer gives none.
NOW = 0


E = TypeVar("E", bound=Event)


class LoadRunningError(FoldlakeError):
    """Another load into the same home is running."""


def append_missing(
    settings: Settings,
    topic: str,
    events: Iterable[E],
    present: int,
    on_acknowledged: Callable[[int], None] = lambda _: None,
    record_time_ms: Callable[[E], int] = lambda _: NOW,
) -> int:
    """Append the events that are missing from the log, wait until all are acknowledged, and return their number.

    The caller holds the `load_lock` since it read which events are missing.

    Args:
        settings: the addresses of the broker and the registry.
        topic: the source topic, which exists.
        events: the missing events, in order; events of one key keep it.
        present: the number of the data set's events that the log has already.
        on_acknowledged: called with the number of the data set's events that are in the log so far.
        record_time_ms: the time of an event's record, in milliseconds since 1970; by default, when it is appended.

    Raises:
        KafkaUnavailableError: the broker did not acknowledge an event.
    """
    on_acknowledged(present)
    serializer = EventSerializer(SchemaRegistry(settings.registry.connection), topic)
    deliveries = _Deliveries(present, on_acknowledged)
    producer = event_producer(settings.kafka_connection)
    appended = 0
    for number, event in enumerate(events):
        value, time_ms = serializer.serialize(event), record_time_ms(event)
        _produce(producer, topic, event_key(event), value, time_ms, deliveries)
        appended += 1
        if number % POLL_EVERY == 0:
            producer.poll(0)
            deliveries.check()
    producer.flush(FLUSH_TIMEOUT_S)
    deliveries.check()
    if deliveries.count != present + appended:
        raise KafkaUnavailableError(
            f"{present + appended - deliveries.count} events were not acknowledged within {FLUSH_TIMEOUT_S:.0f} s. "
            "Hint: check that the broker is up, then load again to continue."
        )
    return appended


def ensure_source_topic(settings: Settings, topic: str) -> None:
    """Create a source topic and its dead-letter topic if they do not exist. Raises KafkaUnavailableError."""
    admin = admin_client(settings.kafka_connection, log_level=0)
    topics = source_topics(topic, settings.topics.partitions, flush_messages=settings.topics.flush_messages)
    ensure_topics(admin, topics, settings.topics.replication_factor)


def event_producer(kafka: KafkaConnection) -> Producer:
    """Return an idempotent producer with the Java client's partitioner."""
    return Producer(
        {
            **kafka.client_settings,
            "acks": "all",
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "linger.ms": 20,
            "compression.type": "lz4",
            "log_level": 0,
        }
    )


class _Deliveries:
    """Counts acknowledged events, and keeps the first failure."""

    def __init__(self, already: int, on_acknowledged: Callable[[int], None]) -> None:
        self.count = already
        self._on_acknowledged = on_acknowledged
        self._failure: KafkaError | None = None

    def report(self, error: KafkaError | None, _message: Message) -> None:
        """Handle one delivery report."""
        if error is not None:
            self._failure = self._failure or error
        else:
            self.count += 1
            if self.count % POLL_EVERY == 0:
                self._on_acknowledged(self.count)

    def check(self) -> None:
        """Report the progress; raises KafkaUnavailableError when an event could not be delivered."""
        if self._failure is not None:
            raise KafkaUnavailableError(
                f"The broker rejected an event ({self._failure}). Hint: load again once the broker is up."
            )
        self._on_acknowledged(self.count)


def _produce(
    producer: Producer, topic: str, key: bytes, value: bytes, time_ms: int, deliveries: _Deliveries
) -> None:
    while True:
        try:
            producer.produce(topic, value, key, on_delivery=deliveries.report, timestamp=time_ms)
        except BufferError:
            # The producer's queue is full: wait for delivery reports.
            producer.poll(0.5)
            deliveries.check()
        except KafkaException as error:
            raise KafkaUnavailableError(f"Cannot append an event to {topic}: {error}") from error
        else:
            return


def load_lock(home: Path) -> AbstractContextManager[None]:
    """Return the lock that prevents concurrent loads, which would append the same missing events twice."""
    return file_lock(
        home / "run" / "load.lock",
        error=lambda locked: LoadRunningError(
            f"Process {locked.holder or 'unknown'} is loading events from {home}. Hint: wait until it has "
            "finished, then load again."
        ),
    )
