"""Events, and their bytes on a source topic."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import fastavro

from include.errors import SchemaError
from include.kafka.record_schema import RecordSchema, schema_file
from include.kafka.wire_format import header


class Event(Protocol):
    """An event of some type."""

    @property
    def schema(self) -> RecordSchema:
        """The schema of the event's type."""

    def fields(self) -> Mapping[str, Any]:
        """Return the value of every field of the schema."""


@dataclass(frozen=True)
class GenericEvent:
    """An event of any type: the type's schema, and the value of each of its fields."""

    schema: RecordSchema
    values: Mapping[str, Any]

    def fields(self) -> Mapping[str, Any]:
        """Return the value of every field of the schema."""
        return self.values


class TypedEvent:
    """Base class of event types declared as frozen dataclasses with the name and the fields of their schema.

    class FundsAdded(TypedEvent, schemas=folder): the schema is in `folder/FundsAdded.avsc`.
    """

    schema: ClassVar[RecordSchema]

    def __init_subclass__(cls, schemas: Path) -> None:
        """Read the type's schema; raises SchemaError when the folder has none."""
        cls.schema = schema_file(schemas / f"{cls.__name__}.avsc")

    def fields(self) -> Mapping[str, Any]:
        """Return the value of every field of the schema."""
        return vars(self)


class SchemaRegistrar(Protocol):
    """What of a `SchemaRegistry` a serializer needs: importing that class takes as long as all declarations, which import this module."""

    def register(self, topic: str, schema: RecordSchema) -> int:
        """Register a schema for a topic, and return its id."""


class EventSerializer:
    """Serializes events as Avro in Confluent's wire format; registers each type's schema for the topic on first use.

    Raises RegistryUnavailableError or SchemaError from `serialize` when the schema cannot be registered.
    """

    def __init__(self, registry: SchemaRegistrar, topic: str) -> None:
        self._registry = registry
        self._topic = topic
        self._writers: dict[str, tuple[bytes, object]] = {}  # key: the schema's text

    def serialize(self, event: Event) -> bytes:
        """Return the value of the event's Kafka record."""
        schema = event.schema
        if schema.text not in self._writers:
            schema_id = self._registry.register(self._topic, schema)
            self._writers[schema.text] = (header(schema_id), fastavro.parse_schema(schema.parsed()))
        framing, parsed = self._writers[schema.text]
        buffer = io.BytesIO()
        buffer.write(framing)
        fastavro.schemaless_writer(buffer, parsed, event.fields())  # type: ignore[arg-type]  # parsed schema
        return buffer.getvalue()


def event_key(event: Event) -> bytes:
    """Return the key of the event's Kafka record: the field that the schema names as `foldlake.key`, in UTF-8.

    Raises SchemaError when the schema names none.
    """
    name = event.schema.key_field
    if name is None:
        raise SchemaError(
            f"Event type {event.schema.full_name} has no key: name one of its fields in the schema's foldlake.key."
        )
    return str(event.fields()[name]).encode()
