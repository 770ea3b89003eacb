"""Appends events to the log: returns once the broker has acknowledged the event, or raises within the command timeout."""

import threading
import time
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from include.errors import FoldlakeError, KafkaUnavailableError, RegistryUnavailableError
from include.kafka.events import Event, EventSerializer, event_key
from include.kafka.schema_registry import SchemaRegistry
from include.settings import Settings

POLL_S = 0.1
# The registry's maximum share of the command timeout; each process registers a schema once.
REGISTRY_SHARE = 0.4


@dataclass(frozen=True)
class AppendedAt:
    """An event's partition and offset in the log."""

    topic: str
    partition: int
    offset: int


class _Delivery:
    """The delivery report of one record, awaited by one thread."""

    def __init__(self) -> None:
        self._done = threading.Event()
        self._error: KafkaError | None = None
        self._at: AppendedAt | None = None

    def report(self, error: KafkaError | None, message: Message) -> None:
        """Store the delivery report (called on the polling thread)."""
        self._error = error
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if error is None and topic is not None and partition is not None and offset is not None:
            self._at = AppendedAt(topic, partition, offset)
        self._done.set()

    def wait(self, timeout_s: float) -> AppendedAt:
        """Return the record's position; raises KafkaUnavailableError when it is not reported in time."""
        if not self._done.wait(timeout_s):
            raise KafkaUnavailableError(
                "Kafka has not acknowledged the event in time; it may or may not have been written."
            )
        if self._at is None:
            raise KafkaUnavailableError(f"Kafka has not acknowledged the event ({self._error}).")
        return self._at


class EventProducer:
    """Appends events to one topic. Create it in the process that uses it (never before a fork); thread-safe."""

    def __init__(self, settings: Settings, topic: str) -> None:
        self._settings = settings
        self._topic = topic
        self._timeout_s = settings.node.command_timeout_s
        self._serializer = EventSerializer(
            SchemaRegistry(settings.registry.url, timeout_s=self._timeout_s * REGISTRY_SHARE), topic
        )
        self._making = threading.Lock()
        self._producer: Producer | None = None

    def append(self, event: Event) -> AppendedAt:
        """Append an event and return its position, once every in-sync replica has it.

        Raises KafkaUnavailableError or RegistryUnavailableError within `node_command_timeout_s`.
        """
        deadline = time.monotonic() + self._timeout_s
        value = self._serializer.serialize(event)
        delivery = _Delivery()
        producer = self._running_producer()
        try:
            producer.produce(self._topic, key=event_key(event), value=value, on_delivery=delivery.report)
        except (BufferError, KafkaException) as error:
            self._drop(producer)
            raise KafkaUnavailableError(
                f"The event cannot be sent ({error}). Nothing was written."
            ) from error
        return delivery.wait(deadline - time.monotonic())

    def _running_producer(self) -> Producer:
        with self._making:
            if self._producer is None:
                self._producer = Producer(self._configuration())
                threading.Thread(
                    target=self._poll, args=(self._producer,), name="deliveries", daemon=True
                ).start()
            return self._producer

    def _configuration(self) -> dict[str, object]:
        return {
            "bootstrap.servers": self._settings.kafka.bootstrap_servers,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 0,
            # The Java client's partitioner: every client maps a key to the same partition.
            "partitioner": "murmur2_random",
            # An expired record is not sent: an event must not appear after its command was rejected.
            "message.timeout.ms": int(self._timeout_s * (1 - REGISTRY_SHARE) * 1000),
            "reconnect.backoff.max.ms": 1000,
            "socket.nagle.disable": True,
            "error_cb": self._on_error,
            "log_level": 3,
        }

    def _poll(self, producer: Producer) -> None:
        """Serve delivery reports while the producer is in use, then for the records that are still in flight."""
        while self._producer is producer:
            producer.poll(POLL_S)
        producer.flush(self._timeout_s)

    def _on_error(self, error: KafkaError) -> None:
        """Drop a producer after a fatal error (its idempotence is broken); the next event creates a new one."""
        if error.fatal():
            self._producer = None

    def _drop(self, producer: Producer) -> None:
        with self._making:
            if self._producer is producer:
                self._producer = None


UNAVAILABLE: tuple[type[FoldlakeError], ...] = (KafkaUnavailableError, RegistryUnavailableError)
