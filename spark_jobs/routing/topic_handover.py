"""Appends to a topic the outputs that another topic has and it lacks."""

from collections.abc import Callable, Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from include.errors import KafkaUnavailableError
from include.kafka.log_reading import read_tail
from include.kafka.origins import LanePartition, OutputOrigin, WrittenRecords
from include.settings import KafkaConnection

# Whether a record of this pair and origin is to be appended.
IsDue = Callable[[LanePartition, OutputOrigin], bool]
FLUSH_TIMEOUT_S = 60.0
DELIVERY_TIMEOUT_MS = 30_000


def newer_than(written: Mapping[LanePartition, OutputOrigin]) -> IsDue:
    """Return a condition for the records whose origins are newer than these of their pairs."""

    def is_due(pair: LanePartition, origin: OutputOrigin) -> bool:
        newest = written.get(pair)
        return newest is None or origin > newest

    return is_due


def append_due(
    kafka: KafkaConnection,
    consumer: Consumer,
    source: str,
    target: str,
    partitions: int,
    records: WrittenRecords,
    is_due: IsDue,
) -> int:
    """Append the records of `source` that are due, each to the partition that it is in; return their number.

    It may be killed and repeated with a condition that excludes what is written then, because each partition is written in order. Reads
    the whole of `source`. partitions: of both topics.

    Raises KafkaUnavailableError, OtherTasksError.
    """
    failures: list[KafkaError] = []
    producer = Producer(
        {
            **kafka.client_settings,
            "acks": "all",
            "enable.idempotence": True,
            "delivery.timeout.ms": DELIVERY_TIMEOUT_MS,
            "compression.type": "lz4",
            "log_level": 3,
        }
    )

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(error)

    appended = 0
    for partition in range(partitions):
        for message in _due(consumer, source, partition, records, is_due):
            if failures:
                break
            _produce(producer, target, message, on_delivery)
            appended += 1
    left = producer.flush(FLUSH_TIMEOUT_S)
    if failures or left:
        reason = (
            failures[0]
            if failures
            else f"{left} records were not acknowledged within {FLUSH_TIMEOUT_S:.0f} s"
        )
        raise KafkaUnavailableError(
            f"Cannot append to {target} ({reason}). Hint: check that the brokers are up."
        )
    return appended


def _due(
    consumer: Consumer, topic: str, partition: int, records: WrittenRecords, is_due: IsDue
) -> Iterator[Message]:
    for message in read_tail(consumer, topic, partition):
        found = records.origin(message)
        if found is not None and is_due(LanePartition(found[0], partition), found[1]):
            yield message


def _produce(producer: Producer, topic: str, message: Message, on_delivery: object) -> None:
    while True:
        try:
            producer.produce(
                topic,
                value=message.value(),
                key=message.key(),
                partition=message.partition() or 0,
                headers=message.headers(),
                on_delivery=on_delivery,  # type: ignore[arg-type]  # a function
            )
        except BufferError:
            producer.poll(0.5)
        except KafkaException as error:
            raise KafkaUnavailableError(f"Cannot append a record to {topic}: {error}") from error
        else:
            producer.poll(0)
            return
