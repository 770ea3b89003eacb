"""How far a version has folded its source, according to the newest records of its changelog."""

from confluent_kafka import Consumer

from include.kafka.log_reading import read_tail
from include.kafka.record_schema import RecordSchema
from include.kafka.state_record import decode_state_record
from include.position import Offsets, Position

# The tasks of a query write concurrently: the newest event's record may not be the last one.
TAIL_RECORDS = 20


def folded_offsets(
    consumer: Consumer, changelog: str, partitions: int, state_schema: RecordSchema
) -> Offsets:
    """Return the source offsets after the newest events in the last records of each partition of a changelog.

    Raises KafkaUnavailableError.
    """
    offsets = Offsets()
    for partition in range(partitions):
        for message in read_tail(consumer, changelog, partition, TAIL_RECORDS):
            value = message.value()
            position = (
                Position.of_removal(message.headers())
                if value is None
                else decode_state_record(value, lambda _id: state_schema).position
            )
            if position is not None:
                offsets = offsets.with_event(position)
    return offsets
