"""What the records of a topic are read as."""

from dataclasses import dataclass

from include.declarations.event_types.event_format import EventFormat
from include.declarations.rules.expression import Expression
from include.kafka.record_schema import RecordSchema


@dataclass(frozen=True)
class TopicEvents:
    """The event types that are read from a topic; other records on it are ignored.

    record_key: what the Kafka key of every record must be; None: the entity of the event.
    """

    topic: str
    readers: tuple[RecordSchema, ...]
    record_key: Expression | None = None
    event_format: EventFormat = EventFormat.AVRO
