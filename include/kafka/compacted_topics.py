"""Compacted topics: reading the partitions of a changelog from given offsets on, the newest record of each key, and published reports.

Readers join no consumer group.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from include.boot_clock import UNKNOWN_BOOT, boot_id, boot_s
from include.errors import KafkaUnavailableError
from include.kafka.log_reading import log_consumer, offset_bounds, read_tail
from include.kafka.topics import partition_count
from include.settings import KafkaConnection

# Handles an error of the consumer, which may be one of a partition; it may raise an exception, which ends the reading.
OnError = Callable[[KafkaError, int | None], None]
# Enough to include the newest report of each key: each is reported every two seconds.
TAIL_REPORTS = 300
# A writer whose newest report is older has stopped.
FRESH_S = 15.0
# A report that the brokers have not accepted by then is dropped: the next one replaces it.
MESSAGE_TIMEOUT_MS = 5000
FLUSH_TIMEOUT_S = 5.0


def changelog_consumer(kafka: KafkaConnection, client_id: str) -> Consumer:
    """Return a consumer for manual assignment that never commits and never resets an offset automatically."""
    return Consumer(
        {
            **kafka.client_settings,
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


def newest_by_key(consumer: Consumer, topic: str, records: int | None = None) -> dict[bytes, bytes]:
    """Return the newest value of each key that is not deleted; empty if the topic does not exist.

    records: how many of the last records to read; None for all. Raises KafkaUnavailableError.
    """
    if partition_count(consumer, topic) is None:
        return {}
    newest: dict[bytes, bytes] = {}
    for message in read_tail(consumer, topic, 0, records):
        key, value = message.key() or b"", message.value()
        key = key.encode() if isinstance(key, str) else key
        if value is None:
            newest.pop(key, None)
        else:
            newest[key] = value
    return newest


@dataclass(frozen=True)
class Report:
    """A report's fields, and the seconds since it was made."""

    fields: dict[str, Any]
    age_s: float

    @property
    def is_fresh(self) -> bool:
        """Whether its writer still reports."""
        return self.age_s < FRESH_S

    @classmethod
    def parse(cls, value: bytes) -> Self:
        """Read a report that was published; raises ValueError or KeyError."""
        fields: dict[str, Any] = json.loads(value)
        if fields.get("boot_id") == boot_id() != UNKNOWN_BOOT:
            return cls(fields, boot_s() - float(fields["at_boot_s"]))
        # Made on another machine: by the wall clocks of both.
        return cls(fields, (datetime.now(UTC) - datetime.fromisoformat(fields["at"])).total_seconds())


@dataclass(frozen=True)
class ReportTopic:
    """A topic on which writers publish a report on each key every two seconds."""

    name: str

    def newest(self, consumer: Consumer) -> list[Report]:
        """Return the newest report on each key, regardless of its age; raises KafkaUnavailableError."""
        return [Report.parse(v) for v in newest_by_key(consumer, self.name, TAIL_REPORTS).values()]

    def read(self, kafka: KafkaConnection) -> list[Report]:
        """Return the same with a consumer of its own."""
        with closing(log_consumer(kafka)) as consumer:
            return self.newest(consumer)


class ReportPublisher:
    """Publishes reports on a topic, without ever waiting for a broker."""

    def __init__(self, kafka: KafkaConnection, topic: ReportTopic) -> None:
        self._topic = topic.name
        self._producer = Producer(
            {
                **kafka.client_settings,
                "message.timeout.ms": MESSAGE_TIMEOUT_MS,
                "linger.ms": 0,
                "log_level": 0,
            }
        )

    def publish(self, key: str, fields: Mapping[str, object]) -> None:
        """Publish a report on a key with the time of now; it is dropped while the producer's queue is full."""
        clock = {"at": datetime.now(UTC).isoformat(), "boot_id": boot_id(), "at_boot_s": boot_s()}
        with suppress(BufferError):
            self._producer.produce(
                self._topic, key=key.encode(), value=json.dumps({**fields, **clock}).encode()
            )
        self._producer.poll(0)

    def close(self) -> None:
        """Send what is still in the producer's queue."""
        self._producer.flush(FLUSH_TIMEOUT_S)
