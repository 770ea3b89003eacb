"""The declaration of an event table: a Delta table with one row for each event of a topic."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from include.declarations.event_types.event_schemas import event_schema
from include.declarations.event_types.privacy import Privacy, field_classes
from include.declarations.event_types.topic_events import TopicEvents
from include.declarations.read_model import require_name
from include.errors import ReadModelError
from include.kafka.record_schema import RecordSchema

EVENT_TIME = "occurredOn"
MONTH_COLUMN = "occurred_month"
PARTITION_COLUMN, OFFSET_COLUMN = "source_partition", "source_offset"


@dataclass(frozen=True)
class TableColumn:
    """A column of an event table: its Avro type, its meaning, and the field of each event type that it contains.

    fields: event type -> field. Empty for what is no field of an event.
    """

    name: str
    avro_type: str | dict[str, Any] | list[Any]
    doc: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


ADDED_COLUMNS = (
    TableColumn(
        MONTH_COLUMN, "string", "Month of occurredOn in UTC, such as 2017-04; the table is partitioned by it."
    ),
    TableColumn(PARTITION_COLUMN, "int", "Partition of the topic in which the event is."),
    TableColumn(OFFSET_COLUMN, "long", "Offset of the event in this partition."),
)


class AppendedTable(Protocol):
    """A table with one row for each event: declared, or derived from a topic (include/declarations/topic_tables/)."""

    @property
    def name(self) -> str:
        """The name: the table is `lake/<name>`."""

    @property
    def source_topic(self) -> str:
        """The topic that it reads."""

    @property
    def doc(self) -> str:
        """What a row is."""

    @property
    def events(self) -> TopicEvents:
        """The event types of which each event is a row."""

    @property
    def columns(self) -> tuple[TableColumn, ...]:
        """The columns, those of ADDED_COLUMNS last."""


@dataclass(frozen=True)
class EventTable:
    """An event table: a Delta table with one row for each event of a topic.

    name: lower case, digits and dashes; the table is `lake/<name>`.
    source_topic: the topic that it reads, often the output of a route.
    event_type: name of the event type. Each of its events is a row; other records on the topic are ignored.
    doc: what a row is, for readers of the table.
    schema_folders: the folders of additional declarations, which are also searched for event schemas; set on loading.
    """

    name: str
    source_topic: str
    event_type: str
    doc: str = ""
    schema_folders: tuple[Path, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:  # noqa: D105 - validates the fields
        require_name("Event table", self.name)

    @cached_property
    def schema(self) -> RecordSchema:
        """The reader's schema of its events."""
        return event_schema(self.event_type, self.schema_folders)

    @cached_property
    def columns(self) -> tuple[TableColumn, ...]:
        """The columns of the table: every field of the schema, the month, and where the event is in the topic."""
        fields = self.schema.parsed()["fields"]
        of_schema = (
            TableColumn(one["name"], one["type"], one.get("doc", ""), {self.event_type: one["name"]})
            for one in fields
        )
        return (*of_schema, *ADDED_COLUMNS)

    @property
    def events(self) -> TopicEvents:
        """The event type whose events are the rows."""
        return TopicEvents(self.source_topic, (self.schema,))

    def require_valid(self, folders: tuple[Path, ...]) -> None:
        """Raise SchemaError if its events have no valid schema, ReadModelError if they cannot be rows."""
        _check(replace(self, schema_folders=folders))


def _check(table: EventTable) -> None:
    schema = table.schema
    if EVENT_TIME not in schema.fields:
        raise ReadModelError(
            f"Event type {schema.name} of event table {table.name} has no field {EVENT_TIME}: add it, the table is partitioned by its month."
        )
    personal = [name for name, found in field_classes(schema).items() if found is Privacy.PERSONAL]
    if personal:
        raise ReadModelError(
            f"Event table {table.name} would keep {personal[0]} of {schema.name}, which is personal: write the events with a route that "
            "leaves it out or makes a pseudonym of it, and read the route's output topic."
        )
    reserved = {column.name.casefold() for column in ADDED_COLUMNS}
    taken = [name for name in schema.fields if name.casefold() in reserved]
    if taken:
        raise ReadModelError(
            f"Event type {schema.name} has a field {taken[0]}, which is the name of a column of every event table: write the events with "
            "a route that gives the field another name."
        )
