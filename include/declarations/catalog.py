"""Everything that is declared: read models, routes, emissions, periodic emissions, event tables, and the topics that they read."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from include.declarations.emission import Emission, load_emissions
from include.declarations.event_table import EventTable, load_event_tables
from include.declarations.event_types.event_format import EventFormat
from include.declarations.event_types.event_schemas import require_distinct_types
from include.declarations.event_types.topic_events import TopicEvents
from include.declarations.periodic.periodic_emission import PeriodicEmission, load_periodic_emissions
from include.declarations.read_model import ReadModel, load_read_models
from include.declarations.rekeying import key_routes, record_key, require_own_topics
from include.declarations.route import Route, load_routes
from include.declarations.topic_options import merge_options
from include.errors import ReadModelError
from include.kafka.record_schema import RecordSchema
from include.settings import TopicSettings

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class Catalog:
    """The read models, the routes, the emissions, the periodic emissions and the event tables, by name."""

    models: dict[str, ReadModel]
    routes: dict[str, Route]
    emissions: dict[str, Emission] = field(default_factory=dict)
    event_tables: dict[str, EventTable] = field(default_factory=dict)
    periodic: dict[str, PeriodicEmission] = field(default_factory=dict)

    @property
    def _readers(self) -> list[ReadModel | Route]:
        return [*self.models.values(), *self.routes.values()]

    @property
    def source_topics(self) -> list[str]:
        """The topics that read models and routes read, each once, with every version of those that routes write."""
        return list(
            dict.fromkeys(topic for one in self._readers for topic in self.topic_versions(one.source_topic))
        )

    def topic_versions(self, topic: str) -> list[str]:
        """Return a topic and, if routes write versions of it, those, in ascending order."""
        return [topic, *(route.output_topic for route in self._later_versions(topic))]

    def newest_topic(self, topic: str) -> str:
        """Return the newest version of a topic: the topic itself, unless routes write later versions of it."""
        return self.topic_versions(topic)[-1]

    def declared_topic(self, topic: str) -> str:
        """Return the topic that read models declare to read a topic, which may be a later version of it."""
        return next((r.declared_topic for r in self.routes.values() if r.output_topic == topic), topic)

    def routes_to(self, topic: str) -> list[Route]:
        """Return the routes that write to exactly this topic."""
        return [route for route in self.routes.values() if route.output_topic == topic]

    def _later_versions(self, topic: str) -> list[Route]:
        versions = {route.version: route for route in self.routes.values() if route.first_topic == topic}
        return [versions[number] for number in sorted(versions)]

    def readers_of(self, topic: str) -> list[ReadModel | Route]:
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
        formats = (
            route.source_format for route in self.routes.values() if route.source_topic == source_topic
        )
        return next(formats, EventFormat.AVRO)

    def events(self, source_topic: str) -> TopicEvents:
        """Return what is read from a source topic, by any read model or route."""
        return TopicEvents(
            source_topic,
            self.event_schemas(source_topic),
            self.record_key(source_topic),
            self.event_format(source_topic),
        )

    def record_key(self, source_topic: str) -> "Callable[[], Column] | None":
        """Return what the Kafka key of every record on a source topic must be; None: the entity of the event."""
        readers = (one for one in self.readers_of(source_topic) if isinstance(one, ReadModel))
        return next((key for model in readers if (key := record_key(model)) is not None), None)

    def partitions(self, source_topic: str, settings: TopicSettings) -> int:
        """Return the declared number of partitions of a source topic, or else the setting."""
        for reader in self.readers_of(source_topic):
            if isinstance(reader, ReadModel):
                return reader.partitions(settings)
            return reader.source_partitions(settings)
        return settings.partitions


def load_catalog(folders: tuple[Path, ...] = ()) -> Catalog:
    """Return all declarations; raises ReadModelError for one that is not valid."""
    models = load_read_models(folders)
    declared = load_routes(folders)
    derived = key_routes(models, folders)
    tables = load_event_tables(models.keys(), folders)
    require_own_topics(models.values(), tables.values(), declared, derived)
    routes = declared | derived
    completed = {name: _completed(route, models, routes) for name, route in routes.items()}
    _require_one_format([*completed.values(), *models.values(), *tables.values()])
    catalog = Catalog(models, completed, event_tables=tables)
    for topic in catalog.source_topics:
        require_distinct_types(f"topic {topic}", catalog.event_types(topic))
    _require_kept_events(completed.values(), [*models.values(), *tables.values()])
    emissions = load_emissions(models, routes, folders)
    periodic = load_periodic_emissions(models, routes, emissions, folders)
    return Catalog(models, completed, emissions, tables, periodic)


def _completed(route: Route, models: dict[str, ReadModel], routes: dict[str, Route]) -> Route:
    """Return the route with the options of its source: those of the read models that read it, or of the routes that write or read it.

    A read model whose events are re-keyed declares the options of the topic to which they are produced.
    """
    readers = (model.topic for model in models.values() if model.source_topic == route.source_topic)
    rekeyed = (model.rekeyed_from for model in models.values() if model.rekeyed_from is not None)
    before = (events.options for events in rekeyed if events.name == route.source_topic)
    writers = (other.topic for other in routes.values() if other.output_topic == route.source_topic)
    others = (other.source for other in routes.values() if other.source_topic == route.source_topic)
    known = next(chain(readers, before, writers), None)
    return replace(route, source=known or merge_options(route.source_topic, others))


def _require_kept_events(routes: Iterable[Route], readers: Iterable[ReadModel | EventTable]) -> None:
    """Raise ReadModelError if a read model or an event table reads a compacted topic, which loses events that count."""
    compacted = {route.source_topic for route in routes if route.source.compacted}
    compacted |= {
        reader.source_topic for reader in readers if isinstance(reader, ReadModel) and reader.topic.compacted
    }
    for reader in readers:
        if reader.source_topic in compacted:
            raise ReadModelError(
                f"{reader.name} reads {reader.source_topic}, which is compacted: a replay could not find the events that Kafka has removed. "
                "Let a route write them to a topic that is kept, and read that."
            )


def _require_one_format(readers: Sequence[ReadModel | Route | EventTable]) -> None:
    """Raise ReadModelError if a topic is read in two formats."""
    in_json = [one for one in readers if isinstance(one, Route) and one.source_format is EventFormat.JSON]
    for route in in_json:
        others = [
            one.name for one in readers if one.source_topic == route.source_topic and one not in in_json
        ]
        if others:
            raise ReadModelError(
                f"Route {route.name} reads {route.source_topic} as JSON, and {others[0]} reads it as Avro. A topic has one format; read "
                "models and event tables read a route's output instead of a topic in JSON."
            )
