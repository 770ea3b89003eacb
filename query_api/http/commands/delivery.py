"""The delivery of one record: the broker's acknowledgement, or an outcome that is not known."""

import threading
from dataclasses import dataclass

from confluent_kafka import KafkaError, Message

from query_api.errors import OutcomeUnknownError


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
