"""The event tables of topics, which nobody declares: by default of those whose events read models fold, and which are kept for ever.

A topic with a retention has none: the table would keep what the topic must forget. Tables are partitioned by month, because a file for each
day is so small that readers spend their time on opening files.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from include.declarations.catalog import Catalog
from include.declarations.event_table import ADDED_COLUMNS, AppendedTable, EventTable, TableColumn
from include.declarations.event_types.field_types import self_contained, without_null
from include.declarations.event_types.privacy import Privacy, field_classes
from include.declarations.event_types.topic_events import EventFormat, TopicEvents
from include.declarations.load import load_catalog
from include.declarations.read_model import ReadModel
from include.errors import ReadModelError, UnknownReadModelError
from include.settings import Settings

AUTO, OFF = "auto", "off"
SETTING = "FOLDLAKE_LAKE_EVENT_TABLES"
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


@dataclass(frozen=True)
class LakeCatalog:
    """The tables of the lake: those of read models, the declared event tables, and those of topics; by name."""

    models: dict[str, ReadModel]
    declared: dict[str, EventTable]
    of_topics: dict[str, TopicTable]

    @property
    def event_tables(self) -> dict[str, AppendedTable]:
        """All tables with one row for each event."""
        return {**self.declared, **self.of_topics}

    @property
    def names(self) -> list[str]:
        """The names of all tables."""
        return [*self.models, *self.event_tables]

    def require_table(self, name: str) -> None:
        """Raise UnknownReadModelError if there is no table of this name; the empty name stands for all of them."""
        if name not in {"", *self.names}:
            raise UnknownReadModelError(
                f"There is no read model or event table {name!r}. Known ones: {', '.join(sorted(self.names))}."
            )

    def appended_tables(self, name: str) -> list[AppendedTable]:
        """Return the event table of this name; those of all topics for `events`, and all event tables for the empty name.

        Raises ReadModelError when there is none of this name.
        """
        if name in {"", FOLDER}:
            return list(self.event_tables.values()) if not name else list(self.of_topics.values())
        if name not in self.event_tables:
            raise ReadModelError(
                f"There is no event table {name!r}. Known event tables: {', '.join(sorted(self.event_tables))}."
            )
        return [self.event_tables[name]]


def load_lake_catalog(settings: Settings) -> LakeCatalog:
    """Return the tables that are declared, and those of the topics that the settings select.

    Raises ReadModelError as `load_catalog`, and for a topic that cannot have a table.
    """
    catalog = load_catalog(settings.declaration_folders)
    return LakeCatalog(
        catalog.models, catalog.event_tables, topic_tables(catalog, settings.lake.event_tables)
    )


def topic_tables(catalog: Catalog, selected: tuple[str, ...]) -> dict[str, TopicTable]:
    """Return the event tables of topics, by name.

    selected: ("auto",), ("off",), or topics.

    Raises ReadModelError for a topic that is not read as Avro, and if a table has the name of the folder of these.
    """
    if selected == (OFF,):
        return {}
    topics = _default_topics(catalog) if selected == (AUTO,) else selected
    if FOLDER in {*catalog.models, *catalog.event_tables}:
        raise ReadModelError(
            f"A read model or an event table is named {FOLDER!r}: its table would contain those of the topics, lake/{FOLDER}/<topic>. Rename "
            f"it, or set {SETTING}={OFF}."
        )
    tables = (_table(catalog, topic) for topic in topics)
    return {table.name: table for table in tables}


def _default_topics(catalog: Catalog) -> list[str]:
    """Return the topics of the read models' events in all their versions, without those that expire or that a declared table has.

    Of a topic that is re-keyed, it is the original one.
    """
    found: dict[str, None] = {}
    for model in catalog.models.values():
        if model.topic.retention_ms is not None:
            continue
        for topic in catalog.topic_versions(model.events_topic):
            types = {schema.name for schema in catalog.event_schemas(topic)}
            declared = {
                name
                for table in catalog.event_tables.values()
                if table.source_topic == topic
                for name in (reader.name for reader in table.events.readers)
            }
            if not types <= declared:
                found[topic] = None
    return list(found)


def _table(catalog: Catalog, topic: str) -> TopicTable:
    events = catalog.events(topic)
    if not events.readers:
        raise ReadModelError(
            f"{SETTING} names topic {topic}, which no read model or route reads: allowed are {AUTO}, {OFF}, or "
            f"{', '.join(sorted(catalog.source_topics))}."
        )
    if events.event_format is not EventFormat.AVRO:
        raise ReadModelError(
            f"{SETTING} names topic {topic}, which is in JSON: name the topic to which a route writes its events."
        )
    return TopicTable(events)
