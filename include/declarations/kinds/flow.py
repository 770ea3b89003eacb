"""A flow: one query of the stream from topic to topic, which writes each output once. Declarations compile to flows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from include.declarations.event_types.event_schemas import event_schema, require_distinct_types
from include.declarations.event_types.known_columns import KnownColumns
from include.declarations.event_types.topic_events import EventFormat, TopicEvents
from include.declarations.latency import Latency, require_latency
from include.declarations.read_model import require_name
from include.declarations.rules.expression import Expression, Fields
from include.declarations.topic_options import TopicOptions, topics_with_options
from include.errors import ReadModelError
from include.kafka.json_mapping import JsonMapping
from include.kafka.record_schema import RecordSchema
from include.kafka.topics import Topic
from include.position import EVENT_COUNT
from include.settings import TopicSettings

ROUTE = "route"


@dataclass(frozen=True)
class Flow:
    """A flow: a query from topic to topic. Its query, topics, lag, task slots, metrics and status follow from it.

    kind: the word for its kind of declaration, such as `route`. name: of the declaration; both are lower case, digits and dashes. They name
        the query and its checkpoint; the name is also the header `route` of every output.
    source_topic, event_types, output_topic, output_type, fields, key, where, each, topic, latency, source_format, version: as of a Route.
    of_read_model: the read model from which it is derived (include/declarations/rekeying.py); empty for a declared flow.
    schema_folders: the folders of additional declarations, which are also searched for event schemas; set on loading.
    source: how the source topic is created, where it differs from the settings, if no read model reads it and no flow writes it; otherwise
        set on loading.
    first_topic: the output topic of version 1, of which `output_topic` is then a version; empty for version 1; set on loading.
    state: aggregates of all events of a key, by name. `where` and `fields` can use their values after the event as `state.<name>`,
        and the number of the key's events as `state.event_count`. The key is that of the records. None: each event is computed by itself.
        A flow with a state runs in real time, reads Avro, and has neither `key` nor `each`.
    declaration: name of the declaration that compiles to it, if that differs; set on loading.
    """

    kind: str
    name: str
    source_topic: str
    event_types: tuple[str, ...]
    output_topic: str
    output_type: str | None = None
    fields: Fields | None = None
    key: Expression | None = None
    where: Expression | None = None
    each: Expression | None = None
    state: Fields | None = None
    topic: TopicOptions = field(default_factory=TopicOptions)
    latency: Latency = Latency.MILLISECONDS
    source_format: EventFormat = EventFormat.AVRO
    version: int = 1
    of_read_model: str = ""
    schema_folders: tuple[Path, ...] = field(default=(), repr=False, compare=False)
    source: TopicOptions = field(default_factory=TopicOptions, repr=False, compare=False)
    first_topic: str = field(default="", repr=False, compare=False)
    declaration: str = field(default="", repr=False, compare=False)

    def __post_init__(self) -> None:  # noqa: D105 - validates the fields
        require_name(self.kind.capitalize(), self.name)
        require_latency(str(self), self.latency)
        if self.version < 1:
            raise ReadModelError(f"version of {self.kind} {self.name} is {self.version}: give 1 or more.")
        require_distinct_types(str(self), self.event_types)
        if not self.event_types:
            raise ReadModelError(f"{self.title} reads no event types: list them in `event_types`.")
        if (self.output_type is None) != (self.fields is None):
            raise ReadModelError(
                f"{self.title} needs both `output_type` and `fields`, or neither, if it writes events as they are."
            )
        if self.output_type is not None and self.key is not None:
            raise ReadModelError(
                f"{self.title} has a `key`, but the key of {self.output_type} is the field that its schema names in foldlake.key: "
                "remove `key`."
            )
        if self.source_format not in set(EventFormat):
            raise ReadModelError(
                f"source_format of {self} is {self.source_format!r}: allowed: {', '.join(EventFormat)}."
            )
        if self.source_format is EventFormat.JSON and self.output_type is None:
            raise ReadModelError(
                f"{self.title} reads JSON, and what it writes is Avro: give `output_type` and `fields`."
            )
        if self.output_type is None and self.each is not None:
            raise ReadModelError(
                f"{self.title} writes several outputs for an event: give their `output_type` and `fields`."
            )
        if self.state is not None:
            self._require_keyed()

    def _require_keyed(self) -> None:
        if self.key is not None or self.each is not None:
            raise ReadModelError(
                f"{self.title} has a state: it writes at most one output for an event, without `key` and `each`."
            )
        if self.source_format is not EventFormat.AVRO:
            raise ReadModelError(
                f"{self.title} has a state, and reads JSON: let a route write the events as Avro."
            )
        if self.latency is not Latency.MILLISECONDS:
            # In batches, an aggregation has a row for each key, not for each event.
            raise ReadModelError(f"{self.title} has a state: it is always in real time.")

    def __str__(self) -> str:
        """Return its kind and name."""
        return f"{self.kind} {self.versioned_name}"

    @property
    def title(self) -> str:
        """Its kind and name at the beginning of a sentence."""
        return f"{self.kind.capitalize()} {self.name}"

    @property
    def versioned_name(self) -> str:
        """The name, and from version 2 on the version."""
        return self.name if self.version == 1 else f"{self.name}.v{self.version}"

    @property
    def declared_name(self) -> str:
        """The name that a user has declared: of the read model from which it is derived, or of its declaration, without a version."""
        return self.of_read_model or self.declaration or self.name

    @property
    def declared_topic(self) -> str:
        """The output topic that the read models behind it declare: that of version 1."""
        return self.first_topic or self.output_topic

    @property
    def query_name(self) -> str:
        """The name of its query, which is also its checkpoint's path below the root."""
        return f"{self.kind}/{self.versioned_name}"

    @property
    def shares_topics(self) -> bool:
        """Whether other flows that share topics may write to its output topic, too."""
        return self.kind == ROUTE

    @property
    def is_in_batches(self) -> bool:
        """Whether its query runs in batches, which need no task slots of their own."""
        return self.latency is Latency.SECOND

    def partitions(self, settings: TopicSettings) -> int:
        """Return the number of partitions of the source topic."""
        return self.source.partitions or settings.partitions

    def output_partitions(self, settings: TopicSettings) -> int:
        """Return the number of partitions of the output topic."""
        return self.topic.partitions or settings.partitions

    def topics(self, settings: TopicSettings) -> list[Topic]:
        """Return the source topic, its dead-letter topic, and the output topic; of a later version, also that topic's dead-letter topic."""
        output, dead_letters = topics_with_options(self.output_topic, self.topic, settings)
        written = [output, dead_letters] if self.first_topic else [output]
        return [*topics_with_options(self.source_topic, self.source, settings), *written]

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
        return output_schema(str(self), str(self.output_type), self.schema_folders)

    @property
    def written_schemas(self) -> tuple[RecordSchema, ...]:
        """The schema of every event type that it writes."""
        return self.event_schemas if self.output_type is None else (self.output_schema,)

    def require_schemas(self) -> None:
        """Raise SchemaError if an event type has no valid schema or no form in JSON, ReadModelError if what it writes has no key, or an expression is not valid."""
        _ = self.written_schemas
        self._require_expressions()
        if self.source_format is EventFormat.JSON:
            for schema in self.event_schemas:
                JsonMapping.of(schema)

    def _require_expressions(self) -> None:
        known = KnownColumns.of_events(self.event_schemas)
        if self.state is not None:
            known.require_fields(f"State of {self}", self.state)
            # The fields that a function returns are known only to Spark.
            names = [*self.state, EVENT_COUNT.name] if isinstance(self.state, Mapping) else None
            known = known.and_struct("state", names)
        for what, expression in (("`where`", self.where), ("`each`", self.each), ("Key", self.key)):
            if expression is not None:
                known.require(f"{what} of {self}", expression)
        if self.fields is not None:
            of_fields = known if self.each is None else known.and_struct("item", None)
            of_fields.require_fields(self.title, self.fields, self.output_schema.fields)


def output_schema(writer: str, output_type: str, schema_folders: tuple[Path, ...]) -> RecordSchema:
    """Return the schema of the records that a flow or an emission writes; raises ReadModelError if it names no key."""
    schema = event_schema(output_type, schema_folders)
    if schema.key_field is None:
        raise ReadModelError(
            f"{schema.full_name}, which {writer} writes, has no key: name one of its fields in foldlake.key."
        )
    return schema
