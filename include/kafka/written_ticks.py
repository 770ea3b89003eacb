"""Which ticks a periodic emission has written, from the headers of its records."""

from typing import cast

from confluent_kafka import Consumer, Message

from include.kafka.log_reading import newest_record, offset_bounds

# The header of each record with its tick, in milliseconds since 1970.
TICK_HEADER = "tick"


def newest_tick(consumer: Consumer, topic: str, partitions: int) -> int | None:
    """Return the newest tick that was written to a topic, in milliseconds since 1970; None if there is none. Raises KafkaUnavailableError."""
    bounds = offset_bounds(consumer, topic, partitions)
    found = (
        newest_record(consumer, topic, partition, lambda message: tick_of(message) is not None, high - low)
        for partition, (low, high) in enumerate(bounds)
        if high > low
    )
    ticks = (tick_of(message) for message in found if message is not None)
    return max((tick for tick in ticks if tick is not None), default=None)


def tick_of(message: Message) -> int | None:
    """Return the tick of a record, in milliseconds since 1970; None if it has none."""
    headers = dict(cast("list[tuple[str, bytes | None]]", message.headers() or []))
    value = headers.get(TICK_HEADER) or b""
    return int(value) if value.isdigit() else None
