"""Reading a topic as a finite log: from the start, or its last records, up to its current end."""

import time
from collections.abc import Callable, Iterator, Mapping

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaException, Message, TopicPartition

from include.errors import KafkaUnavailableError
from include.settings import KafkaConnection
from include.waiting import retry

REQUEST_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 30.0
RETRY_INTERVAL_S = 0.1
# Where a partition ends with a transaction's control record, its end is known only when a fetch there returns without a record.
END_WAIT_MS = 10
# By how much a search backwards widens its next reading.
WIDENING = 100
LEADER_ERRORS = {
    "NOT_LEADER_FOR_PARTITION",
    "LEADER_NOT_AVAILABLE",
    "UNKNOWN_TOPIC_OR_PART",
}


def log_consumer(kafka: KafkaConnection, fetch_wait_ms: int = END_WAIT_MS) -> Consumer:
    """Return a consumer that joins no group and reads committed records only.

    fetch_wait_ms: how long the broker waits for a record at the end of a partition. Increase it for a reader that stays there.
    """
    return Consumer(log_consumer_settings(kafka, fetch_wait_ms))


def log_consumer_settings(
    kafka: KafkaConnection, fetch_wait_ms: int = END_WAIT_MS
) -> dict[str, str | int | bool]:
    """Return the settings of a `log_consumer`, for one that needs further ones."""
    return {
        **kafka.client_settings,
        "group.id": "foldlake-log-reader",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": fetch_wait_ms,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "log_level": 3,
    }


def end_offsets(consumer: Consumer, topic: str, partitions: int) -> tuple[int, ...]:
    """Return the end offset of each partition: that of the next record, or of the first one of a transaction that is still open.

    The offset before it need not be that of a record: include.kafka.record_ends says whether events wait. Raises KafkaUnavailableError
    when the brokers do not respond in time.
    """
    return tuple(offset_bounds_of(consumer, topic, partition)[1] for partition in range(partitions))


def end_offsets_of_topics(consumer: Consumer, topics: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Return what `end_offsets` does for several topics (name -> number of partitions), with one request to each broker.

    Omits a topic if one of its partitions has no leader. Raises KafkaUnavailableError when the brokers do not respond in time.
    """
    wanted = [TopicPartition(topic, p, OFFSET_END) for topic, number in topics.items() for p in range(number)]
    try:
        found = consumer.offsets_for_times(wanted, timeout=REQUEST_TIMEOUT_S)
    except KafkaException as error:
        raise KafkaUnavailableError(
            f"Cannot read the end offsets of {', '.join(sorted(topics))} ({error}). Hint: check that the brokers are up."
        ) from error
    ends = {(one.topic, one.partition): one.offset for one in found if one.error is None and one.offset >= 0}
    return {
        topic: tuple(ends[topic, p] for p in range(number))
        for topic, number in topics.items()
        if all((topic, p) in ends for p in range(number))
    }


def offset_bounds(consumer: Consumer, topic: str, partitions: int) -> tuple[tuple[int, int], ...]:
    """Return the offset of the first record that each partition still has, and its end offset; errors as `end_offsets`."""
    return tuple(offset_bounds_of(consumer, topic, partition) for partition in range(partitions))


def offset_bounds_of(consumer: Consumer, topic: str, partition: int) -> tuple[int, int]:
    """Return the same of one partition."""
    try:
        low, high = retry(
            lambda: consumer.get_watermark_offsets(
                TopicPartition(topic, partition), timeout=REQUEST_TIMEOUT_S
            ),
            retryable=_is_without_leader,
            timeout_s=REQUEST_TIMEOUT_S,
            poll_s=RETRY_INTERVAL_S,
        )
    except KafkaException as error:
        raise KafkaUnavailableError(
            f"Cannot read the end offset of {topic}/{partition} ({error}). Hint: check that the brokers are up."
        ) from error
    return low, high


def _is_without_leader(error: Exception) -> bool:
    """Return whether the partition has no leader, as it happens briefly after its topic is created or its broker restarts."""
    return isinstance(error, KafkaException) and error.args[0].name() in LEADER_ERRORS


def read_tail(
    consumer: Consumer, topic: str, partition: int, records: int | None = None
) -> Iterator[Message]:
    """Yield the records at the last `records` offsets of a partition (at all when None) up to its end at the time of the call.

    If no record is there, as after an aborted transaction, yields the newest ones before it. Raises KafkaUnavailableError when the
    brokers stop responding.
    """
    low, high = offset_bounds_of(consumer, topic, partition)
    start = low if records is None else max(low, high - records)
    has_records = False
    while start < high and not has_records:
        for message in _records(
            consumer, topic, partition, OFFSET_BEGINNING if start == low else start, high
        ):
            has_records = True
            yield message
        if start == low:
            return
        start = max(low, high - (high - start) * WIDENING)


def read_from(consumer: Consumer, topic: str, partition: int, offset: int) -> Iterator[Message]:
    """Yield the records of a partition from an offset on, up to its end at the time of the call; errors as `read_tail`."""
    low, high = offset_bounds_of(consumer, topic, partition)
    if offset < high:
        yield from _records(consumer, topic, partition, max(low, offset), high)


def _records(consumer: Consumer, topic: str, partition: int, start: int, high: int) -> Iterator[Message]:
    """Yield the records of a partition from an offset on, up to its end or to the offset before `high`."""
    consumer.assign([TopicPartition(topic, partition, start)])
    try:
        while True:
            message = consumer.poll(READ_TIMEOUT_S)
            if message is None:
                raise KafkaUnavailableError(
                    f"Reading {topic}/{partition} stopped: no record within {READ_TIMEOUT_S:.0f} s. "
                    "Hint: check that the brokers are up."
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
                raise KafkaUnavailableError(f"Cannot read {topic}/{partition}: {error}")
    finally:
        consumer.unassign()


def newest_record(
    consumer: Consumer, topic: str, partition: int, accept: Callable[[Message], bool], limit: int
) -> Message | None:
    """Return the newest record of a partition that `accept` accepts, among the last `limit` records; None if there is none.

    Reads the last record first, and further back only as long as none is accepted. Raises KafkaUnavailableError.
    """
    records = 1
    while True:
        found: Message | None = None
        for message in read_tail(consumer, topic, partition, records):
            if accept(message):
                found = message
        if found is not None or records >= limit:
            return found
        low, high = offset_bounds_of(consumer, topic, partition)
        if records >= high - low:
            return None
        records = min(limit, records * WIDENING)


def record_at(consumer: Consumer, topic: str, partition: int, offset: int) -> Message | None:
    """Return the first record of a partition that has this offset or a greater one; None when there is none.

    Raises KafkaUnavailableError when the brokers do not respond.
    """
    return next(read_from(consumer, topic, partition, offset), None)


def age_beyond_s(
    consumer: Consumer, topic: str, offsets: Mapping[int, int], ends: Mapping[int, int]
) -> float:
    """Return the age of the oldest event at or after `offsets` and below `ends`, by append time; 0 if there is none.

    Raises KafkaUnavailableError when the broker does not respond.
    """
    appended_ms = []
    for partition, end in ends.items():
        first = offsets.get(partition, 0)
        if first >= end:
            continue
        consumer.assign([TopicPartition(topic, partition, first)])
        message = consumer.poll(REQUEST_TIMEOUT_S)
        consumer.unassign()
        if message is None:
            message_text = (
                f"Cannot read {topic}/{partition} at offset {first}. Hint: check that the broker is up."
            )
            raise KafkaUnavailableError(message_text)
        # There may be no event below the end, but only markers of transactions.
        if message.error() is None and (message.offset() or 0) < end:
            appended_ms.append(message.timestamp()[1])
    return max(0.0, time.time() - min(appended_ms) / 1000) if appended_ms else 0.0
