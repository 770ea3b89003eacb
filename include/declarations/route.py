"""The declaration of a route: a stateless query from topic to topic, as data."""

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from include.declarations.event_types.event_format import EventFormat
from include.declarations.event_types.event_schemas import event_schema, require_distinct_types
from include.declarations.event_types.known_columns import KnownColumns
from include.declarations.event_types.topic_events import TopicEvents
from include.declarations.latency import Latency, require_latency
from include.declarations.rules.expression import Expression, Fields
from include.declarations.topic_options import TopicOptions
from include.errors import ReadModelError
from include.kafka.json_mapping import JsonMapping
from include.kafka.record_schema import RecordSchema
from include.kafka.topics import Topic, source_topics
from include.settings import TopicSettings

NAME_PATTERN = re.compile(r"[a-z][a-z0-9-]*")


@dataclass(frozen=True)
class Route:
    """A route as data.

    name: lower case, digits and dashes; part of its checkpoint's path and of the header `route` of every record that it writes.
    source_topic: the topic that it reads.
    source_format: the format of the events on it; that of all routes that read the topic.
    event_types: names of the event types that it reads; other records on the topic are ignored.
    output_topic: the topic that it writes. Several routes may write to one topic, which then has the events of all of them.
    output_type: name of the event type that it writes; `foldlake.key` of its schema names the field that is the new key. None: the
        route writes each event as it is, under its own schema.
    fields: each field of the output, from an event's columns, as those of a read model's fold; with `output_type`. The expressions are those of
        ReadModel.
    key: the key (a string) under which an event is written as it is; None: its own key. Only without `output_type`.
    where: the condition that an event must satisfy; None: every event.
    each: an array; each element gives one output, in order, and is the column `item` in `fields`. None: one output
        for each event.
    topic: how the output topic is created, where it differs from the settings.
    latency: in real time, or in batches of about a second, which need no task slots of their own.
    version: 1, or higher for a new version of the route with this name, which writes to a topic of its own, `<output_topic>.v<version>`.
    of_read_model: the read model from which the route is derived (include/declarations/rekeying.py); empty for a declared route.
    schema_folders: the folders of additional declarations, which are also searched for event schemas; set on loading.
    source: how the source topic is created, where it differs from the settings, if no read model reads it and no route writes it;
        otherwise set on loading.
    first_topic: the output topic of version 1, of which `output_topic` is then a version; empty for version 1; set on loading.
    """

    name: str
    source_topic: str
    event_types: tuple[str, ...]
    output_topic: str
    output_type: str | None = None
    fields: Fields | None = None
    key: Expression | None = None
    where: Expression | None = None
    each: Expression | None = None
    topic: TopicOptions = field(default_factory=TopicOptions)
    latency: Latency = Latency.MILLISECONDS
    source_format: EventFormat = EventFormat.AVRO
    version: int = 1
    of_read_model: str = ""
    schema_folders: tuple[Path, ...] = field(default=(), repr=False, compare=False)
    source: TopicOptions = field(default_factory=TopicOptions, repr=False, compare=False)
    first_topic: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:  # noqa: D105 - validates the fields
        if not NAME_PATTERN.fullmatch(self.name):
            raise ReadModelError(
                f"Route name {self.name!r} is not valid: use lower-case letters, digits and dashes."
            )
        require_latency(f"route {self.name}", self.latency)
        if self.version < 1:
            raise ReadModelError(f"version of route {self.name} is {self.version}: give 1 or more.")
        require_distinct_types(f"route {self.name}", self.event_types)
        if not self.event_types:
            raise ReadModelError(f"Route {self.name} reads no event types: list them in `event_types`.")
        if (self.output_type is None) != (self.fields is None):
            raise ReadModelError(
                f"Route {self.name} needs both `output_type` and `fields`, or neither, if it writes events as they are."
            )
        if self.output_type is not None and self.key is not None:
            raise ReadModelError(
                f"Route {self.name} has a `key`, but the key of {self.output_type} is the field that its schema names in foldlake.key: "
                "remove `key`."
            )
        if self.source_format not in set(EventFormat):
            raise ReadModelError(
                f"source_format of route {self.name} is {self.source_format!r}: allowed: {', '.join(EventFormat)}."
            )
        if self.source_format is EventFormat.JSON and self.output_type is None:
            raise ReadModelError(
                f"Route {self.name} reads JSON, and what it writes is Avro: give `output_type` and `fields`."
            )
        if self.output_type is None and self.each is not None:
            raise ReadModelError(
                f"Route {self.name} writes several outputs for an event: give their `output_type` and `fields`."
            )

    @property
    def versioned_name(self) -> str:
        """The name, and from version 2 on the version."""
        return self.name if self.version == 1 else f"{self.name}.v{self.version}"

    @property
    def declared_topic(self) -> str:
        """The output topic that the read models behind it declare: that of version 1."""
        return self.first_topic or self.output_topic

    @property
    def query_name(self) -> str:
        """The name of its query, which is also its checkpoint's path below the root."""
        return f"route/{self.versioned_name}"

    def source_partitions(self, settings: TopicSettings) -> int:
        """Return the number of partitions of the source topic."""
        return self.source.partitions or settings.partitions

    def output_partitions(self, settings: TopicSettings) -> int:
        """Return the number of partitions of the output topic."""
        return self.topic.partitions or settings.partitions

    def topics(self, settings: TopicSettings) -> list[Topic]:
        """Return the source topic, its dead-letter topic, and the output topic; of a later version, also that topic's dead-letter topic."""
        output, dead_letters = _source_topics(self.output_topic, self.topic, settings)
        written = [output, dead_letters] if self.first_topic else [output]
        return [*_source_topics(self.source_topic, self.source, settings), *written]

    @property
    def events(self) -> TopicEvents:
        """What it reads from the source topic."""
        return TopicEvents(self.source_topic, self.event_schemas, event_format=self.source_format)

    @cached_property
    def event_schemas(self) -> tuple[RecordSchema, ...]:
        """The reader's schema of each event type, in the order of `event_types`."""
        return tuple(event_schema(name, self.schema_folders) for name in self.event_types)

    @cached_property
    def output_schema(self) -> RecordSchema:
        """The schema of the outputs that have one of their own; raises ReadModelError if it names no key."""
        return output_schema(f"route {self.name}", str(self.output_type), self.schema_folders)

    def require_valid(self, folders: tuple[Path, ...]) -> None:
        """Raise SchemaError if an event type has no valid schema or no form in JSON, ReadModelError if what it writes has no key, or an expression is not valid."""
        loaded = replace(self, schema_folders=folders)
        _ = loaded.written_schemas
        loaded._require_expressions()  # noqa: SLF001 - of the same class
        if self.source_format is EventFormat.JSON:
            for schema in loaded.event_schemas:
                JsonMapping.of(schema)

    def _require_expressions(self) -> None:
        known, name = KnownColumns.of_events(self.event_schemas), f"route {self.name}"
        for what, expression in (("`where`", self.where), ("`each`", self.each), ("Key", self.key)):
            if expression is not None:
                known.require(f"{what} of {name}", expression)
        if self.fields is not None:
            of_fields = known if self.each is None else known.and_struct("item", None)
            of_fields.require_fields(f"Route {self.name}", self.fields, self.output_schema.fields)

    @property
    def written_schemas(self) -> tuple[RecordSchema, ...]:
        """The schema of every event type that it writes."""
        return self.event_schemas if self.output_type is None else (self.output_schema,)


def output_schema(writer: str, output_type: str, schema_folders: tuple[Path, ...]) -> RecordSchema:
    """Return the schema of the records that a route or an emission writes; raises ReadModelError if it names no key."""
    schema = event_schema(output_type, schema_folders)
    if schema.key_field is None:
        raise ReadModelError(
            f"{schema.full_name}, which {writer} writes, has no key: name one of its fields in foldlake.key."
        )
    return schema


def _source_topics(name: str, options: TopicOptions, settings: TopicSettings) -> list[Topic]:
    return source_topics(
        name,
        options.partitions or settings.partitions,
        options.replication_factor,
        options.retention_ms,
        settings.flush_messages,
        compacted=options.compacted,
    )
