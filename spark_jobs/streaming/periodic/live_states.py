"""The states of a version, followed on its changelog."""

from collections.abc import Mapping
from functools import cache

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from include.errors import KafkaUnavailableError, SchemaError
from include.kafka.log_reading import end_offsets
from include.kafka.record_schema import RecordSchema
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.state_record import StateRecord, decode_state_record

READ_TIMEOUT_S = 30.0
# Records that the consumer hands over at once.
BATCH = 10_000


class LiveStates:
    """The newest state record of each key of a changelog, in memory; not thread-safe.

    partitions: of the changelog.
    """

    def __init__(self, consumer: Consumer, registry: SchemaRegistry, topic: str, partitions: int) -> None:
        self._consumer = consumer
        self._topic = topic
        self._next = dict.fromkeys(range(partitions), 0)
        self._states: dict[bytes, StateRecord] = {}
        self._schema_of = cache(lambda schema_id: _schema(registry, schema_id))

    def refresh(self) -> Mapping[bytes, StateRecord]:
        """Read the changelog up to its present end, and return the state record of each key.

        Raises KafkaUnavailableError, RegistryUnavailableError, SchemaError.
        """
        ends = end_offsets(self._consumer, self._topic, len(self._next))
        behind = {partition: end for partition, end in enumerate(ends) if end > self._next[partition]}
        if behind:
            self._read(behind)
        return self._states

    def _read(self, ends: Mapping[int, int]) -> None:
        self._consumer.assign([TopicPartition(self._topic, p, self._next[p]) for p in ends])
        left = set(ends)
        try:
            while left:
                messages = self._consumer.consume(BATCH, READ_TIMEOUT_S)
                if not messages:
                    raise KafkaUnavailableError(
                        f"Reading {self._topic} stopped: no record within {READ_TIMEOUT_S:.0f} s. Hint: check that the brokers are up."
                    )
                for message in messages:
                    self._handle(message)
                left = {p for p in left if self._next[p] < ends[p]}
        except KafkaException as error:
            raise KafkaUnavailableError(f"Cannot read {self._topic}: {error}") from error
        finally:
            self._consumer.unassign()

    def _handle(self, message: Message) -> None:
        error = message.error()
        partition, offset = message.partition() or 0, message.offset() or 0
        if error is None:
            self._apply(message)
            self._next[partition] = offset + 1
        elif error.name() == "_PARTITION_EOF":
            # Compaction may have removed the last records before the end.
            self._next[partition] = max(self._next[partition], offset)
        elif not error.retriable():
            raise KafkaUnavailableError(f"Cannot read {self._topic}/{partition}: {error}")

    def _apply(self, message: Message) -> None:
        key, value = message.key() or b"", message.value()
        key = key.encode() if isinstance(key, str) else key
        if value is None:
            self._states.pop(key, None)
            return
        record = decode_state_record(value, self._schema_of)
        current = self._states.get(key)
        # After a crash, the driver may have written an older record after a newer one.
        if current is None or record.event_count >= current.event_count:
            self._states[key] = record


def _schema(registry: SchemaRegistry, schema_id: int) -> RecordSchema:
    schema = registry.usable_schema(schema_id)
    if schema is None:
        raise SchemaError(
            f"The schema registry has no schema {schema_id}, with which a state record was written."
        )
    return schema
