"""The event table of a topic, `lake/events/<topic>`: its columns follow from the event types that are read from the topic."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from include.declarations.event_table import ADDED_COLUMNS, TableColumn
from include.declarations.event_types.field_types import self_contained, without_null
from include.declarations.event_types.privacy import Privacy, field_classes
from include.declarations.event_types.topic_events import TopicEvents

FOLDER = "events"
EVENT_TYPE = TableColumn("event_type", "string", "Type of the event: the name of its schema.")
RESERVED = frozenset(column.name.casefold() for column in (EVENT_TYPE, *ADDED_COLUMNS))


@dataclass(frozen=True)
class TopicTable:
    """The event table of a topic: one row for each event of the types that read models and routes read from it.

    A field that several event types have is one column, if its type is the same. Otherwise, or if its name is taken, the column of a
    later type is `<EventType>_<field>`. Personal fields have no column.
    """

    events: TopicEvents

    @property
    def name(self) -> str:
        """The table's name: its path below the lake's root."""
        return f"{FOLDER}/{self.events.topic}"

    @property
    def source_topic(self) -> str:
        """The topic."""
        return self.events.topic

    @property
    def doc(self) -> str:
        """What a row is."""
        types = ", ".join(reader.name for reader in self.events.readers)
        return f"The events of topic {self.events.topic}, one row each ({types}), without personal fields."

    @cached_property
    def columns(self) -> tuple[TableColumn, ...]:
        """The event's type, the fields of all event types, the month, and where the event is in the topic."""
        found: dict[str, TableColumn] = {}
        for column in self._fields():
            existing = found.get(column.name.casefold())
            if existing is None:
                found[column.name.casefold()] = column
            else:
                fields = {**existing.fields, **column.fields}
                found[column.name.casefold()] = TableColumn(
                    existing.name, existing.avro_type, existing.doc, fields
                )
        return (EVENT_TYPE, *found.values(), *ADDED_COLUMNS)

    def _fields(self) -> Iterator[TableColumn]:
        """Yield a column for each field of each event type; two with one name have one type."""
        taken: dict[str, tuple[str, Any]] = {}
        for reader in self.events.readers:
            classes = field_classes(reader)
            parsed = reader.parsed()
            for one in parsed["fields"]:
                name, avro_type = one["name"], self_contained(one["type"], parsed)
                column, kind = name, (name, without_null(avro_type))
                while column.casefold() in RESERVED or taken.setdefault(column.casefold(), kind) != kind:
                    column, kind = f"{reader.name}_{column}", (f"{reader.name}.{name}", None)
                if classes[name] is not Privacy.PERSONAL:
                    yield TableColumn(column, avro_type, one.get("doc", ""), {reader.name: name})
