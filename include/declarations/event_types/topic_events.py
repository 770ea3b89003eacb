"""What the records of a topic are read as."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from include.declarations.event_types.event_format import EventFormat
from include.kafka.record_schema import RecordSchema

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class TopicEvents:
    """The event types that are read from a topic; other records on it are ignored.

    record_key: what the Kafka key of every record must be; None: the entity of the event.
    """

    topic: str
    readers: tuple[RecordSchema, ...]
    record_key: "Callable[[], Column] | None" = None
    event_format: EventFormat = EventFormat.AVRO
