"""Where the records of a partition end: the offset after the newest record that readers get.

A partition's end offset can be greater. Transaction markers, records of aborted transactions, and records that compaction has removed
have offsets, and no reader gets them. Whoever compares an end offset with the newest record that was processed must therefore use the
offset after the newest record, or a producer of transactions that pauses looks like events that wait.

Readers of committed records get nothing of a partition from the first record of an open transaction on. The broker aborts a transaction
that its producer leaves open, after the producer's `transaction.timeout.ms`. Until then, the records behind it wait, also those that
other producers have appended.
"""

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    IsolationLevel,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from include.errors import KafkaUnavailableError
from include.kafka.log_reading import READ_TIMEOUT_S, log_consumer_settings, offset_bounds_of, record_at
from include.kafka.topics import ADMIN_TIMEOUT_S, partition_count
from include.position import Offsets
from include.settings import KafkaConnection

# By how much a search backwards widens its next reading. It begins with one offset, where most partitions have their newest record.
WIDENING = 4


# A topic, and the number of one of its partitions.
Partition = tuple[str, int]
# A transaction that is at work ends sooner.
OPEN_S = 10.0


@dataclass(frozen=True)
class RecordEnd:
    """Where the records of a partition end.

    offset: after the newest record; the first offset of the partition if it has no record. written_s: the Unix time of the newest
    record, as Kafka has it; None if there is none.
    """

    offset: int
    written_s: float | None = None


class RecordEnds:
    """The record ends of partitions. Reads a partition once for each end offset, and only what has been appended since. Not thread-safe.

    consumer: a `log_consumer`, which is assigned to other partitions by each reading.
    """

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self._known: dict[Partition, tuple[int, RecordEnd]] = {}

    def unread(self, topic: str, ends: Mapping[int, int], read: Mapping[int, int]) -> Offsets:
        """Return the end offsets of a topic, those above `read` lowered to the record ends.

        Only these partitions are read: it costs nothing where everything has been read. Raises KafkaUnavailableError.
        """
        found = self.of({(topic, p): end for p, end in ends.items() if end > read.get(p, 0)})
        return Offsets(
            {p: found[(topic, p)].offset if end > read.get(p, 0) else end for p, end in ends.items()}
        )

    def of(self, ends: Mapping[Partition, int]) -> dict[Partition, RecordEnd]:
        """Return the record ends of the partitions whose end offsets are given; raises KafkaUnavailableError."""
        changed = {partition: end for partition, end in ends.items() if self._end_of(partition) != end}
        if changed:
            self._search(changed)
        return {partition: self._known[partition][1] for partition in ends}

    def _end_of(self, partition: Partition) -> int | None:
        known = self._known.get(partition)
        return None if known is None else known[0]

    def _search(self, ends: Mapping[Partition, int]) -> None:
        # What was searched before ends below: a greater end than now is that of a topic that was created again.
        floors = {
            partition: known if (known := self._end_of(partition) or 0) < end else 0
            for partition, end in ends.items()
        }
        records = 1
        while ends:
            starts = {partition: max(floors[partition], end - records) for partition, end in ends.items()}
            for partition, message in self._newest(starts, ends).items():
                self._known[partition] = ends[partition], _record_end(message)
            ends = {partition: end for partition, end in ends.items() if self._end_of(partition) != end}
            for partition, end in ends.items():
                low = offset_bounds_of(self._consumer, *partition)[0]
                if starts[partition] <= max(low, floors[partition]):
                    self._known[partition] = end, self._before(partition, floors[partition], low)
            ends = {partition: end for partition, end in ends.items() if self._end_of(partition) != end}
            records *= WIDENING

    def _before(self, partition: Partition, floor: int, low: int) -> RecordEnd:
        """Return the record end of a partition without a record from `floor` on; low: its first offset."""
        known = self._known[partition][1] if floor else RecordEnd(low)
        return known if known.offset > low else RecordEnd(low, known.written_s)

    def _newest(
        self, starts: Mapping[Partition, int], ends: Mapping[Partition, int]
    ) -> dict[Partition, Message]:
        """Return the newest record of each partition between these offsets, all partitions at once; omits one without a record."""
        found: dict[Partition, Message] = {}
        left = {partition for partition, start in starts.items() if start < ends[partition]}
        self._consumer.assign([TopicPartition(*partition, starts[partition]) for partition in left])
        try:
            while left:
                message = self._consumer.poll(READ_TIMEOUT_S)
                if message is None:
                    raise KafkaUnavailableError(
                        f"Reading {', '.join(f'{name}/{number}' for name, number in sorted(left))} stopped: no record within "
                        f"{READ_TIMEOUT_S:.0f} s. Hint: check that the brokers are up."
                    )
                self._take(message, ends, found, left)
        except KafkaException as error:
            raise KafkaUnavailableError(f"Cannot read the newest records ({error}).") from error
        finally:
            self._consumer.unassign()
        return found

    def _take(
        self,
        message: Message,
        ends: Mapping[Partition, int],
        found: dict[Partition, Message],
        left: set[Partition],
    ) -> None:
        topic, number, offset = message.topic(), message.partition(), message.offset()
        error = message.error()
        if error is not None and error.name() != "_PARTITION_EOF":
            if not error.retriable():
                raise KafkaUnavailableError(f"Cannot read {topic}/{number}: {error}")
            return
        if topic is None or number is None or offset is None:
            return
        partition = (topic, number)
        if partition not in left:
            return
        if error is None and offset < ends[partition]:
            found[partition] = message
        if error is not None or offset >= ends[partition] - 1:
            left.remove(partition)


def unread_ends(consumer: Consumer, topic: str, ends: Mapping[int, int], read: Mapping[int, int]) -> Offsets:
    """Return what `RecordEnds.unread` does, for a single comparison; raises KafkaUnavailableError."""
    return RecordEnds(consumer).unread(topic, ends, read)


def _record_end(message: Message) -> RecordEnd:
    kind, written_ms = message.timestamp()
    return RecordEnd(
        (message.offset() or 0) + 1, None if kind == TIMESTAMP_NOT_AVAILABLE else written_ms / 1000
    )


@dataclass(frozen=True)
class OpenTransaction:
    """A topic with a transaction that has been open for longer than OPEN_S.

    records: number of offsets that wait behind the first record of such a transaction. open_s: time since that record was written.
    """

    topic: str
    records: int
    open_s: float


def open_transactions(
    kafka: KafkaConnection, admin: AdminClient, topics: Iterable[str]
) -> list[OpenTransaction]:
    """Return the topics with transactions that stay open; raises KafkaUnavailableError."""
    partitions = [(topic, p) for topic in sorted(topics) for p in range(partition_count(admin, topic) or 0)]
    if not partitions:
        return []
    stable = _ends(admin, partitions, IsolationLevel.READ_COMMITTED)
    ends = _ends(admin, partitions, IsolationLevel.READ_UNCOMMITTED)
    held = {
        partition: end - stable[partition]
        for partition, end in ends.items()
        if end > stable.get(partition, end)
    }
    if not held:
        return []
    with closing(
        Consumer(log_consumer_settings(kafka) | {"isolation.level": "read_uncommitted"})
    ) as consumer:
        open_s = {partition: _age_s(consumer, partition, stable[partition]) for partition in held}
    long_open = [partition for partition, age_s in open_s.items() if age_s > OPEN_S]
    return [
        OpenTransaction(
            topic,
            sum(held[partition] for partition in long_open if partition[0] == topic),
            max(open_s[partition] for partition in long_open if partition[0] == topic),
        )
        for topic in dict.fromkeys(topic for topic, _ in long_open)
    ]


def _ends(
    admin: AdminClient, partitions: Iterable[Partition], isolation: IsolationLevel
) -> Mapping[Partition, int]:
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    wanted = {TopicPartition(*partition): latest for partition in partitions}
    try:
        found = admin.list_offsets(wanted, isolation_level=isolation, request_timeout=ADMIN_TIMEOUT_S)
        return {(p.topic, p.partition): future.result(ADMIN_TIMEOUT_S).offset for p, future in found.items()}
    except (KafkaException, TimeoutError) as error:
        raise KafkaUnavailableError(
            f"Cannot read the end offsets of {', '.join(sorted({topic for topic, _ in partitions}))} ({error}). Hint: check that the "
            "brokers are up."
        ) from error


def _age_s(consumer: Consumer, partition: Partition, offset: int) -> float:
    record = record_at(consumer, *partition, offset)
    return 0.0 if record is None else max(0.0, time.time() - record.timestamp()[1] / 1000)
