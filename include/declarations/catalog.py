"""Everything that is declared: the read models, the routes, the emissions, and the topics that they read."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from include.declarations.emission import Emission, load_emissions
from include.declarations.read_model import ReadModel, load_read_models
from include.declarations.rekeying import key_routes, record_key, require_own_topics
from include.declarations.route import Route, load_routes
from include.declarations.topic_options import TopicOptions
from include.kafka.record_schema import RecordSchema
from include.settings import TopicSettings

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True)
class Catalog:
    """The read models, the routes and the emissions, by name."""

    models: dict[str, ReadModel]
    routes: dict[str, Route]
    emissions: dict[str, Emission] = field(default_factory=dict)

    @property
    def _readers(self) -> list[ReadModel | Route]:
        return [*self.models.values(), *self.routes.values()]

    @property
    def source_topics(self) -> list[str]:
        """The topics that read models and routes read, each once."""
        return list(dict.fromkeys(one.source_topic for one in self._readers))

    def event_schemas(self, source_topic: str) -> tuple[RecordSchema, ...]:
        """Return the schema of every event type that is read from a source topic."""
        schemas = {
            schema.name: schema
            for one in self._readers
            if one.source_topic == source_topic
            for schema in one.event_schemas
        }
        return tuple(schemas.values())

    def record_key(self, source_topic: str) -> "Callable[[], Column] | None":
        """Return what the Kafka key of every record on a source topic must be; None: the entity of the event."""
        readers = (model for model in self.models.values() if model.source_topic == source_topic)
        return next((key for model in readers if (key := record_key(model)) is not None), None)

    def partitions(self, source_topic: str, settings: TopicSettings) -> int:
        """Return the declared number of partitions of a source topic, or else the setting."""
        for model in self.models.values():
            if model.source_topic == source_topic:
                return model.partitions(settings)
        for route in self.routes.values():
            if route.source_topic == source_topic:
                return route.source_partitions(settings)
        return settings.partitions


def load_catalog(folders: tuple[Path, ...] = ()) -> Catalog:
    """Return all declarations; raises ReadModelError for one that is not valid."""
    models = load_read_models(folders)
    declared = load_routes(folders)
    derived = key_routes(models, folders)
    require_own_topics(models.values(), declared, derived)
    routes = declared | derived
    completed = {name: _completed(route, models, routes) for name, route in routes.items()}
    return Catalog(models, completed, load_emissions(models, routes, folders))


def _completed(route: Route, models: dict[str, ReadModel], routes: dict[str, Route]) -> Route:
    """Return the route with the options of its source: those of the read models that read it, or of the routes that write it.

    A read model whose events are re-keyed declares the options of the topic to which they are produced.
    """
    readers = (model.topic for model in models.values() if model.source_topic == route.source_topic)
    rekeyed = (model.rekeyed_from for model in models.values() if model.rekeyed_from is not None)
    before = (events.options for events in rekeyed if events.name == route.source_topic)
    writers = (other.topic for other in routes.values() if other.output_topic == route.source_topic)
    return replace(route, source=next(chain(readers, before, writers), TopicOptions()))
