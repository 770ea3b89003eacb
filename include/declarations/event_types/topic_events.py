"""How the records of a topic are read: the format, and the event types."""

from dataclasses import dataclass
from enum import StrEnum

from include.declarations.rules.expression import Expression
from include.kafka.record_schema import RecordSchema


class EventFormat(StrEnum):
    """The format of the events of a topic.

    AVRO: Avro records in Confluent's wire format. JSON: objects of plain JSON, which only a route reads.

    The schema of a JSON event type is an Avro schema, too: it names the fields and types that the objects are converted to.
    """

    AVRO = "avro"
    JSON = "json"


@dataclass(frozen=True)
class TopicEvents:
    """The event types that are read from a topic; other records on it are ignored.

    record_key: what the Kafka key of every record must be; None: the entity of the event.
    """

    topic: str
    readers: tuple[RecordSchema, ...]
    record_key: Expression | None = None
    event_format: EventFormat = EventFormat.AVRO
