"""A transactional producer, as Kafka Streams, Flink and Connect have one: what it commits, aborts and leaves open has markers in the log."""

import uuid
from collections.abc import Iterable

from confluent_kafka import Consumer, Message, Producer

from include.kafka.log_reading import log_consumer_settings, offset_bounds_of
from include.settings import Settings
from tests.support.waiting import wait_until

TIMEOUT_S = 60.0
Record = tuple[bytes, bytes]


class TransactionalWriter:
    """Appends transactions to one topic.

    timeout_s: after this time the broker aborts a transaction that is left open.
    """

    def __init__(self, settings: Settings, topic: str, timeout_s: float = TIMEOUT_S) -> None:
        self._topic = topic
        self._written: set[int] = set()
        self._consumers = [
            Consumer(log_consumer_settings(settings.kafka_connection) | {"isolation.level": level})
            for level in ("read_committed", "read_uncommitted")
        ]
        self._producer = Producer(
            {
                **settings.kafka_connection.client_settings,
                "transactional.id": uuid.uuid4().hex,
                "transaction.timeout.ms": round(timeout_s * 1000),
                "partitioner": "murmur2_random",
                "log_level": 0,
            }
        )
        self._producer.init_transactions(TIMEOUT_S)

    def commit(self, records: Iterable[Record], partition: int = -1) -> None:
        """Append a transaction; partition: of all records, by default that of each key."""
        self.leave_open(records, partition)
        self._producer.commit_transaction(TIMEOUT_S)
        self._wait_for_markers()

    def abort(self, records: Iterable[Record], partition: int = -1) -> None:
        """Append a transaction, and abort it."""
        self.leave_open(records, partition)
        self.abort_open()

    def leave_open(self, records: Iterable[Record], partition: int = -1) -> None:
        """Append the records of a transaction, and do not end it."""
        self._written.clear()
        self._producer.begin_transaction()
        for key, value in records:
            self._producer.produce(
                self._topic, value, key, partition=partition, on_delivery=self._note_partition
            )
        assert self._producer.flush(TIMEOUT_S) == 0

    def abort_open(self) -> None:
        """Abort the transaction that was left open."""
        self._producer.abort_transaction(TIMEOUT_S)
        self._wait_for_markers()

    def _note_partition(self, _error: object, message: Message) -> None:
        self._written.add(message.partition() or 0)

    def _wait_for_markers(self) -> None:
        """Wait until the markers are in the log: the broker writes them after it has confirmed the end of the transaction."""

        def are_written() -> bool:
            stable, ends = (
                [offset_bounds_of(consumer, self._topic, p) for p in self._written]
                for consumer in self._consumers
            )
            return stable == ends

        wait_until(are_written, "the markers are in the log", TIMEOUT_S)
