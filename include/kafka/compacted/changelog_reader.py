"""Reads partitions of a changelog from given offsets on, with a consumer that joins no group."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from include.errors import KafkaUnavailableError
from include.kafka.log_reading import offset_bounds

# Handles an error of the consumer, which may be one of a partition; it may raise an exception, which ends the reading.
OnError = Callable[[KafkaError, int | None], None]


def changelog_consumer(bootstrap_servers: str, client_id: str) -> Consumer:
    """Return a consumer for manual assignment that never commits and never resets an offset automatically."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "foldlake-query-node-data",
            "client.id": client_id,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            # The default pause when the local queue is full is 1 s; at 200,000 records/s the consumer would idle.
            "fetch.queue.backoff.ms": 5,
            "queued.max.messages.kbytes": 32_768,
            "socket.nagle.disable": True,
            "log_level": 3,
        }
    )


class ChangelogReader:
    """Reads records in the order of their offsets within each partition. One thread uses it.

    offsets: assigned partition -> the next offset to read. at_end: the partitions whose end was reached by the last `records`.
    """

    def __init__(self, consumer: Consumer, topic: str, on_error: OnError) -> None:
        self.topic = topic
        self.offsets: dict[int, int] = {}
        self.at_end: set[int] = set()
        self._consumer = consumer
        self._on_error = on_error

    @property
    def position(self) -> tuple[int, ...]:
        """The next offset of each assigned partition, in the order of the assignment."""
        return tuple(self.offsets.values())

    def bounds(self, partitions: int) -> tuple[tuple[int, int], ...]:
        """Return the first offset that each partition still has, and its end offset; raises KafkaUnavailableError."""
        return offset_bounds(self._consumer, self.topic, partitions)

    def assign(self, offsets: Mapping[int, int]) -> None:
        """Read these partitions from these offsets on, and no others; raises KafkaUnavailableError.

        OFFSET_BEGINNING stands for the first offset that the partition still has.
        """
        self.offsets = {partition: max(0, offset) for partition, offset in offsets.items()}
        with self._errors():
            self._consumer.assign([TopicPartition(self.topic, *start) for start in offsets.items()])

    def poll(self, limit: int, timeout_s: float) -> list[Message]:
        """Return up to `limit` messages that have arrived, for `records`; waits for the first one.

        Empty after the timeout. Raises KafkaUnavailableError.
        """
        with self._errors():
            first = self._consumer.poll(timeout_s)
            return [] if first is None else [first, *self._consumer.consume(limit - 1, timeout=0)]

    def records(self, messages: Iterable[Message]) -> Iterator[tuple[int, int, Message]]:
        """Yield the partition, offset and message of each record; `offsets` are those after it.

        Skips a record that was fetched under an earlier assignment and has been read already.
        """
        self.at_end.clear()
        offsets = self.offsets
        for message in messages:
            error, partition, offset = message.error(), message.partition(), message.offset()
            if error is not None:
                self._handle(error, partition, offset)
            elif (
                partition is not None and offset is not None and offset >= offsets.get(partition, offset + 1)
            ):
                offsets[partition] = offset + 1
                yield partition, offset, message

    def _handle(self, error: KafkaError, partition: int | None, offset: int | None) -> None:
        if error.name() != "_PARTITION_EOF":
            self._on_error(error, partition)
        elif partition in self.offsets:
            self.at_end.add(partition)
            # The end can be after the last record: compaction removes records, and transactions end with a marker.
            self.offsets[partition] = max(self.offsets[partition], offset or 0)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            raise KafkaUnavailableError(f"Cannot read {self.topic}: {error}") from error

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()
