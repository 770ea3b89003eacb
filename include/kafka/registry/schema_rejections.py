"""Which schema ids were not in the schema registry, up to which offsets: a compacted topic that live queries and replays share.

A producer registers a schema before it writes the first record with its id. A record that was in the log before the registry
answered that its id does not exist is therefore invalid for ever, also if the registry assigns the id to a schema later. Without
these offsets, a replay would decode such a record, which the live query has rejected.
"""

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from confluent_kafka import KafkaException, Producer

from include.errors import KafkaUnavailableError
from include.kafka.compacted_topics import newest_by_key
from include.kafka.log_reading import log_consumer
from include.kafka.topics import (
    SCHEMA_REJECTIONS_TOPIC,
    admin_client,
    changelog,
    ensure_topics,
)
from include.position import Offsets
from include.settings import KafkaConnection

WRITE_TIMEOUT_S = 15.0


@dataclass(frozen=True)
class Rejection:
    """The records with one schema id that are rejected: those below `until`; if it is open, all of them, until it is closed."""

    until: Offsets
    is_open: bool = False

    def includes(self, partition: int, offset: int) -> bool:
        """Return whether the record at this offset is rejected."""
        return self.is_open or offset < self.until.of(partition)

    def merge(self, other: "Rejection | None") -> "Rejection":
        """Return a rejection that includes what either of them includes."""
        if other is None:
            return self
        return Rejection(self.until.merge(other.until), self.is_open or other.is_open)


class SchemaRejections:
    """Reads and writes the rejections of all source topics.

    writer: the process that writes, such as `stream driver`. Each writer has records of its own, and a reader merges them, so that
        two processes cannot replace each other's.
    """

    def __init__(self, kafka: KafkaConnection, writer: str, replication_factor: int = 1) -> None:
        self._kafka = kafka
        self._writer = writer
        self._replication_factor = replication_factor

    def read(self, source_topic: str) -> dict[int, Rejection]:
        """Return schema id -> its rejection in a source topic; raises KafkaUnavailableError."""
        return read_rejections(self._kafka, source_topic)

    def write(self, source_topic: str, rejections: Mapping[int, Rejection]) -> None:
        """Write the rejections of these ids, replacing those that this process wrote earlier; raises KafkaUnavailableError."""
        admin = admin_client(self._kafka)
        ensure_topics(admin, [changelog(SCHEMA_REJECTIONS_TOPIC, 1)], self._replication_factor)
        producer = Producer({**self._kafka.client_settings, "enable.idempotence": True, "log_level": 3})
        errors: list[str] = []
        try:
            for schema_id, rejection in rejections.items():
                producer.produce(
                    SCHEMA_REJECTIONS_TOPIC,
                    key=json.dumps([source_topic, schema_id, self._writer]),
                    value=json.dumps({"until": rejection.until, "is_open": rejection.is_open}),
                    on_delivery=lambda error, _: errors.append(str(error)) if error else None,
                )
            unwritten = producer.flush(WRITE_TIMEOUT_S)
        except (KafkaException, BufferError) as error:
            raise _not_written(error) from error
        if unwritten or errors:
            raise _not_written(errors[0] if errors else f"no acknowledgement within {WRITE_TIMEOUT_S:.0f} s")


def read_rejections(kafka: KafkaConnection, source_topic: str) -> dict[int, Rejection]:
    """Return schema id -> its rejection in a source topic, merged over all writers; raises KafkaUnavailableError."""
    with closing(log_consumer(kafka)) as consumer:
        newest = newest_by_key(consumer, SCHEMA_REJECTIONS_TOPIC)
    rejections: dict[int, Rejection] = {}
    for key, value in newest.items():
        topic, schema_id, _ = json.loads(key)
        if topic == source_topic:
            rejections[schema_id] = _parse(value).merge(rejections.get(schema_id))
    return rejections


def _parse(value: bytes) -> Rejection:
    fields = json.loads(value)
    return Rejection(Offsets.from_json(fields["until"]), fields["is_open"])


def _not_written(reason: object) -> KafkaUnavailableError:
    message = f"The rejected schema ids could not be written to {SCHEMA_REJECTIONS_TOPIC} ({reason}): check that the broker is up."
    return KafkaUnavailableError(message)
