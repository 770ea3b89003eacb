"""The bounds of the log: whether its first events still exist, and the age of the first event after an offset."""

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, TopicPartition

from include.errors import KafkaUnavailableError

REQUEST_TIMEOUT_S = 10.0


def lost_partitions(consumer: Consumer, topic: str, partitions: int) -> dict[int, int]:
    """Return partition -> first offset that still exists, for partitions whose first events were deleted."""
    starts = {
        partition: consumer.get_watermark_offsets(
            TopicPartition(topic, partition), timeout=REQUEST_TIMEOUT_S
        )[0]
        for partition in range(partitions)
    }
    return {partition: start for partition, start in starts.items() if start > 0}


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
