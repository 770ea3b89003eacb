"""The catalog: all declarations, linked with each other, and the topics that they read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from include.declarations.api import ReadModelApi
from include.declarations.event_table import EventTable
from include.declarations.event_types.topic_events import EventFormat, TopicEvents
from include.declarations.kinds.emission import Emission
from include.declarations.kinds.endpoint import Endpoint
from include.declarations.kinds.flow import ROUTE, Flow
from include.declarations.kinds.kind import FlowDeclaration
from include.declarations.kinds.model_output import ModelOutput
from include.declarations.kinds.periodic_emission import PeriodicEmission
from include.declarations.read_model import ReadModel
from include.declarations.rules.expression import Expression
from include.kafka.record_schema import RecordSchema
from include.settings import TopicSettings

OutputT = TypeVar("OutputT", bound=ModelOutput)


@dataclass(frozen=True)
class ModuleFailure:
    """A module that is left out. line: of the file; 0 if the error is not at one of its lines."""

    module: str
    file: str
    line: int
    error: str

    def __str__(self) -> str:
        """Return the module, where the error is, and the error, without a full stop at the end."""
        location = f"{self.file}:{self.line}" if self.line else self.file
        return f"{self.module} is left out: {location}: {self.error.removesuffix('.')}"


@dataclass(frozen=True)
class Catalog:
    """The read models, their outputs (emissions of either kind) and event tables by name, the flows, and the HTTP API.

    apis: the lookups and commands of each read model, also of one that has none, by its name. endpoints: the lookups that
    read several records, each with its read model, by path. flows: those of routes, and of all other declarations that compile to flows. kinds: the kinds that modules define, by their word.
    failures: the modules that are left out.
    """

    models: dict[str, ReadModel]
    flows: tuple[Flow, ...] = ()
    outputs: dict[str, ModelOutput] = field(default_factory=dict)
    event_tables: dict[str, EventTable] = field(default_factory=dict)
    apis: tuple[ReadModelApi, ...] = ()
    endpoints: tuple[tuple[ReadModel, Endpoint], ...] = ()
    kinds: Mapping[str, type[FlowDeclaration]] = field(default_factory=dict)
    failures: tuple[ModuleFailure, ...] = ()

    def outputs_of(self, kind: type[OutputT]) -> list[OutputT]:
        """Return the outputs of read models of a kind."""
        return [one for one in self.outputs.values() if isinstance(one, kind)]

    @property
    def routes(self) -> dict[str, Flow]:
        """The routes by name, for tests of declarations; that of a version after the first ends in `.v<version>`."""
        return {flow.versioned_name: flow for flow in self.flows if flow.kind == ROUTE}

    @property
    def emissions(self) -> dict[str, Emission]:
        """The emissions by name, for tests of declarations."""
        return {one.name: one for one in self.outputs_of(Emission)}

    @property
    def periodic(self) -> dict[str, PeriodicEmission]:
        """The periodic emissions by name, for tests of declarations."""
        return {one.name: one for one in self.outputs_of(PeriodicEmission)}

    @property
    def _readers(self) -> list[ReadModel | Flow]:
        return [*self.models.values(), *self.flows]

    @property
    def source_topics(self) -> list[str]:
        """The topics that read models and flows read, each once, with every version of those that flows write."""
        return list(
            dict.fromkeys(topic for one in self._readers for topic in self.topic_versions(one.source_topic))
        )

    def topic_versions(self, topic: str) -> list[str]:
        """Return a topic and, if flows write versions of it, those, in ascending order."""
        return [topic, *(flow.output_topic for flow in self._later_versions(topic))]

    def newest_topic(self, topic: str) -> str:
        """Return the newest version of a topic: the topic itself, unless flows write later versions of it."""
        return self.topic_versions(topic)[-1]

    def declared_topic(self, topic: str) -> str:
        """Return the topic that read models declare to read a topic, which may be a later version of it."""
        return next((r.declared_topic for r in self.flows if r.output_topic == topic), topic)

    def flows_to(self, topic: str) -> list[Flow]:
        """Return the flows that write to exactly this topic."""
        return [flow for flow in self.flows if flow.output_topic == topic]

    def _later_versions(self, topic: str) -> list[Flow]:
        versions = {flow.version: flow for flow in self.flows if flow.first_topic == topic}
        return [versions[number] for number in sorted(versions)]

    def readers_of(self, topic: str) -> list[ReadModel | Flow]:
        """Return what reads a topic, or may read it as a version of the topic that it declares."""
        names = {topic, self.declared_topic(topic)}
        return [one for one in self._readers if one.source_topic in names]

    def event_schemas(self, source_topic: str) -> tuple[RecordSchema, ...]:
        """Return the schema of every event type that is read from a source topic."""
        schemas = {
            schema.name: schema for one in self.readers_of(source_topic) for schema in one.event_schemas
        }
        return tuple(schemas.values())

    def event_types(self, source_topic: str) -> list[str]:
        """Return the names of the event types that are read from a source topic."""
        return [name for one in self.readers_of(source_topic) for name in one.event_types]

    def event_format(self, source_topic: str) -> EventFormat:
        """Return the format of the events on a source topic."""
        formats = (flow.source_format for flow in self.flows if flow.source_topic == source_topic)
        return next(formats, EventFormat.AVRO)

    def events(self, source_topic: str) -> TopicEvents:
        """Return what is read from a source topic, by any read model or flow."""
        return TopicEvents(
            source_topic,
            self.event_schemas(source_topic),
            self.record_key(source_topic),
            self.event_format(source_topic),
        )

    def record_key(self, source_topic: str) -> Expression | None:
        """Return what the Kafka key of every record on a source topic must be; None: the entity of the event."""
        keys = (one.events.record_key for one in self.readers_of(source_topic))
        return next((key for key in keys if key is not None), None)

    def partitions(self, source_topic: str, settings: TopicSettings) -> int:
        """Return the declared number of partitions of a source topic, or else the setting."""
        declared = (reader.partitions(settings) for reader in self.readers_of(source_topic))
        return next(declared, settings.partitions)
