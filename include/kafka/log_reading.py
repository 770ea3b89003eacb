"""Reading a topic as a finished log: from the start, or from its last records, up to where it ends now."""

import time
from collections.abc import Iterator

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

from include.errors import KafkaUnavailableError

REQUEST_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 30.0
RETRY_INTERVAL_S = 0.1
LEADER_ERRORS = {
    "NOT_LEADER_FOR_PARTITION",
    "LEADER_NOT_AVAILABLE",
    "UNKNOWN_TOPIC_OR_PART",
}


def log_consumer(bootstrap_servers: str) -> Consumer:
    """Return a consumer without a group that reads committed records only."""
    return Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "foldlake-log-reader",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "log_level": 3,
        }
    )


def end_offsets(consumer: Consumer, topic: str, partitions: int) -> tuple[int, ...]:
    """Return the end offset (that of the next record) of each partition.

    Raises KafkaUnavailableError when the broker does not answer in time.
    """
    return tuple(_watermarks(consumer, topic, partition)[1] for partition in range(partitions))


def _watermarks(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    deadline_s = time.monotonic() + REQUEST_TIMEOUT_S
    while True:
        try:
            low, high = consumer.get_watermark_offsets(
                TopicPartition(topic, partition), timeout=REQUEST_TIMEOUT_S
            )
        except KafkaException as error:
            # A topic made a moment ago, or a broker that has just come back, has no leader for a while.
            if error.args[0].name() not in LEADER_ERRORS or time.monotonic() > deadline_s:
                message = f"Kafka does not say where {topic}/{partition} ends ({error}): is the broker up?"
                raise KafkaUnavailableError(message) from error
            time.sleep(RETRY_INTERVAL_S)
        else:
            return low, high


def read_tail(
    consumer: Consumer, topic: str, partition: int, records: int | None = None
) -> Iterator[Message]:
    """Yield the last `records` records of a partition (all of them when None) up to its end at the time of the call.

    Raises KafkaUnavailableError when the broker stops answering half-way.
    """
    low, high = _watermarks(consumer, topic, partition)
    if high <= low:
        return
    start = OFFSET_BEGINNING if records is None else max(low, high - records)
    consumer.assign([TopicPartition(topic, partition, start)])
    try:
        while True:
            message = consumer.poll(READ_TIMEOUT_S)
            if message is None:
                raise KafkaUnavailableError(
                    f"Kafka stopped answering while {topic}/{partition} was being read."
                )
            error = message.error()
            if error is None:
                yield message
                offset = message.offset()
                if offset is not None and offset >= high - 1:
                    return
            elif error.name() == "_PARTITION_EOF":
                return
            elif not error.retriable():
                raise KafkaUnavailableError(f"{topic}/{partition} cannot be read: {error}")
    finally:
        consumer.unassign()
