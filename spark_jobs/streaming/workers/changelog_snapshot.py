"""The states of a version, followed on its changelog."""

from collections.abc import Mapping
from functools import cache

from confluent_kafka import Consumer, KafkaError

from include.errors import KafkaUnavailableError, SchemaError
from include.kafka.compacted_topics import ChangelogReader
from include.kafka.log_reading import end_offsets
from include.kafka.record_schema import RecordSchema
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.state_record import StateRecord, decode_state_record
from include.position import supersedes

READ_TIMEOUT_S = 30.0
# Records that the consumer hands over at once.
BATCH = 10_000


class ChangelogSnapshot:
    """The newest state record of each key of a changelog, in memory; not thread-safe.

    partitions: of the changelog. states: key -> state record, as of the last `refresh`.
    """

    def __init__(self, consumer: Consumer, registry: SchemaRegistry, topic: str, partitions: int) -> None:
        self._consumer = consumer
        self._topic = topic
        self._reader = ChangelogReader(consumer, topic, self._on_error)
        self._next = dict.fromkeys(range(partitions), 0)
        self.states: dict[bytes, StateRecord] = {}
        self._schema_of = cache(lambda schema_id: _schema(registry, schema_id))

    def refresh(self) -> Mapping[bytes, StateRecord]:
        """Read the changelog up to its present end, and return the state record of each key.

        Raises KafkaUnavailableError, RegistryUnavailableError, SchemaError.
        """
        ends = end_offsets(self._consumer, self._topic, len(self._next))
        behind = {partition: end for partition, end in enumerate(ends) if end > self._next[partition]}
        if behind:
            self._read(behind)
        return self.states

    def _read(self, ends: Mapping[int, int]) -> None:
        reader = self._reader
        reader.assign({partition: self._next[partition] for partition in ends})
        try:
            while any(reader.offsets[partition] < end for partition, end in ends.items()):
                arrived = reader.poll(BATCH, READ_TIMEOUT_S)
                if not arrived:
                    raise KafkaUnavailableError(
                        f"Reading {self._topic} stopped: no record within {READ_TIMEOUT_S:.0f} s. Hint: check that the brokers are up."
                    )
                for partition, offset, message in reader.records(arrived):
                    self.apply(message.key() or b"", message.value())
                    self._next[partition] = offset + 1
                self._next |= reader.offsets
        finally:
            self._consumer.unassign()

    def apply(self, key: bytes | str, value: bytes | None) -> None:
        """Apply the next record of the changelog; raises ValueError for one that is not a state record."""
        key = key.encode() if isinstance(key, str) else key
        if value is None:
            self.states.pop(key, None)
            return
        record = decode_state_record(value, self._schema_of)
        current = self.states.get(key)
        if current is None or supersedes(record.event_count, current.event_count):
            self.states[key] = record

    def _on_error(self, error: KafkaError, partition: int | None) -> None:
        if not error.retriable():
            raise KafkaUnavailableError(f"Cannot read {self._topic}/{partition}: {error}")


def _schema(registry: SchemaRegistry, schema_id: int) -> RecordSchema:
    schema = registry.usable_schema(schema_id)
    if schema is None:
        raise SchemaError(
            f"The schema registry has no schema {schema_id}, with which a state record was written."
        )
    return schema
