"""Transactions that stay open: readers of committed records get nothing of a partition from the first record of such a transaction on.

The broker aborts a transaction that its producer leaves open, after the producer's `transaction.timeout.ms`. Until then, the records
behind it wait, also those that other producers have appended.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from include.errors import KafkaUnavailableError
from include.kafka.ends.record_ends import Partition
from include.kafka.log_reading import log_consumer_settings, record_at
from include.kafka.topics import ADMIN_TIMEOUT_S, partition_count

# A transaction that is at work ends sooner.
OPEN_S = 10.0


@dataclass(frozen=True)
class OpenTransaction:
    """A topic with a transaction that has been open for longer than OPEN_S.

    records: number of offsets that wait behind the first record of such a transaction. open_s: time since that record was written.
    """

    topic: str
    records: int
    open_s: float


def open_transactions(
    bootstrap_servers: str, admin: AdminClient, topics: Iterable[str]
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
    consumer = Consumer(log_consumer_settings(bootstrap_servers) | {"isolation.level": "read_uncommitted"})
    try:
        open_s = {partition: _age_s(consumer, partition, stable[partition]) for partition in held}
    finally:
        consumer.close()
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
