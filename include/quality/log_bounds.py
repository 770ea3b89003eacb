"""The bounds of the log: whether its first events are still there, and how old the first event beyond an offset is."""

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, TopicPartition

from include.errors import KafkaUnavailableError

REQUEST_TIMEOUT_S = 10.0


def lost_partitions(consumer: Consumer, topic: str, partitions: int) -> dict[int, int]:
    """Return partition -> first offset that is still there, of those partitions whose first events are gone."""
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
    """Return how long ago the oldest event at or beyond `offsets` and below `ends` was appended; 0 when there is none.

    Raises KafkaUnavailableError when the broker does not answer.
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
            message_text = f"Cannot read {topic}/{partition} at offset {first}: is the broker up?"
            raise KafkaUnavailableError(message_text)
        if message.error() is None:
            appended_ms.append(message.timestamp()[1])
    return max(0.0, time.time() - min(appended_ms) / 1000) if appended_ms else 0.0
