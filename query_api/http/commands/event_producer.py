"""Appends events to the log: returns once the broker has acknowledged the event, or raises within the command timeout.

An error says whether the event may have been written (decision 28): an event is handed to Kafka's client only while Kafka answers,
because from then on only an acknowledgement tells what became of it.
"""

import threading
import time
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from include.errors import FoldlakeError, KafkaUnavailableError, RegistryUnavailableError, note_refusal
from include.kafka.events import Event, EventSerializer, event_key
from include.kafka.schema_registry import SchemaRegistry
from include.observability.request_context import record_headers
from include.settings import Settings
from query_api.errors import OutcomeUnknownError
from query_api.lookup.routing import partition_of

POLL_S = 0.1
# The maximum share of the command timeout for what precedes the record: the registry, which each process asks once for each
# schema, and the question whether Kafka answers.
PREPARATION_SHARE = 0.4
# What is left for that question when the registry took the whole share.
MIN_QUESTION_S = 0.2


@dataclass(frozen=True)
class AppendedAt:
    """An event's partition and offset in the log."""

    topic: str
    partition: int
    offset: int


class Delivery:
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
        """Return the record's position; raises OutcomeUnknownError when it is not acknowledged in time.

        No error of a delivery report proves that the record was not written. librdkafka reports `_MSG_TIMED_OUT` for a record
        that it never sent and for one that the broker has, and `_PURGE_QUEUE` also for one that waits to be sent again.
        """
        if not self._done.wait(timeout_s):
            raise OutcomeUnknownError.because("no answer in time")
        if self._at is None:
            raise OutcomeUnknownError.because("no answer" if self._error is None else self._error.str())
        return self._at


class EventProducer:
    """Appends events to one topic. Create it in the process that uses it (never before a fork); thread-safe."""

    def __init__(self, settings: Settings, topic: str) -> None:
        self._kafka = settings.kafka_connection
        self._topic = topic
        self._timeout_s = settings.node.command_timeout_s
        self._record_timeout_s = self._timeout_s * (1 - PREPARATION_SHARE)
        registry_timeout_s = self._timeout_s * PREPARATION_SHARE
        self._serializer = EventSerializer(
            SchemaRegistry(settings.registry.connection, timeout_s=registry_timeout_s), topic
        )
        self._making = threading.Lock()
        self._producer: Producer | None = None
        # Whether Kafka acknowledged the latest event, and no connection has failed since.
        self._is_acknowledging = False

    def append(self, event: Event) -> AppendedAt:
        """Append an event and return its position, once every in-sync replica has it.

        1. Serialize the event. Fails while the schema registry is unavailable.
        2. At first and after any failure: ask Kafka for the partition's leader. Fails while Kafka does not answer.
        3. Hand the record to Kafka's client, which sends it, and wait for the acknowledgement.

        Raises within `node_command_timeout_s`: SchemaError when the registry rejects the event's schema, RegistryUnavailableError or
        KafkaUnavailableError when the record was not handed over, so that nothing was written; OutcomeUnknownError when it was, and no
        acknowledgement came.
        """
        deadline = time.monotonic() + self._timeout_s
        key, value = event_key(event), self._serializer.serialize(event)
        producer = self._running_producer()
        if not self._is_acknowledging:
            self._require_leader(producer, key, deadline - time.monotonic() - self._record_timeout_s)
        delivery = Delivery()
        try:
            producer.produce(
                self._topic, key=key, value=value, headers=record_headers(), on_delivery=delivery.report
            )
        except (BufferError, KafkaException) as error:
            self._drop(producer)
            raise self._nothing_written(f"The event cannot be sent ({error})") from error
        try:
            at = delivery.wait(deadline - time.monotonic())
        except OutcomeUnknownError:
            self._is_acknowledging = False
            raise
        self._is_acknowledging = True
        return at

    def _require_leader(self, producer: Producer, key: bytes, timeout_s: float) -> None:
        """Return once Kafka names the leader of the key's partition; raises KafkaUnavailableError."""
        try:
            listed = producer.list_topics(self._topic, timeout=max(timeout_s, MIN_QUESTION_S))
        except KafkaException as error:
            reason = error.args[0].str()
            raise self._nothing_written(f"Kafka at {self._kafka} does not answer ({reason})") from error
        found = listed.topics[self._topic]
        if found.error is not None or not found.partitions:
            reason = "it has no partitions" if found.error is None else found.error.str()
            raise self._nothing_written(f"Kafka does not serve the topic {self._topic} ({reason})")
        partition = partition_of(key, len(found.partitions))
        if found.partitions[partition].leader < 0:
            raise self._nothing_written(f"Partition {partition} of {self._topic} has no leader")

    @staticmethod
    def _nothing_written(reason: str) -> KafkaUnavailableError:
        return KafkaUnavailableError(f"{reason}. Nothing was written.")

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
            **self._kafka.client_settings,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 0,
            # The Java client's partitioner: every client maps a key to the same partition.
            "partitioner": "murmur2_random",
            # An expired record is not sent, so that an event does not appear long after its command.
            "message.timeout.ms": int(self._record_timeout_s * 1000),
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
        """Ask Kafka before the next event: a connection failed. After a fatal error, the next event creates a new producer."""
        self._is_acknowledging = False
        note_refusal(error)
        if error.fatal():
            self._producer = None

    def _drop(self, producer: Producer) -> None:
        with self._making:
            if self._producer is producer:
                self._producer = None


UNAVAILABLE: tuple[type[FoldlakeError], ...] = (KafkaUnavailableError, RegistryUnavailableError)
