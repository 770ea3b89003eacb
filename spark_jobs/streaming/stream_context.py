"""What query specifications are made from: settings, read models, Kafka, the schema registry and the version registry."""

import logging
from collections.abc import Sequence
from typing import Self

from pyspark.sql import SparkSession

from include.declarations.read_model import ReadModel, read_model
from include.errors import KafkaUnavailableError, RegistryUnavailableError
from include.kafka.log_reading import log_consumer
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import Topic, admin_client, ensure_topics
from include.settings import Settings
from include.versions.registry import VersionRegistry
from spark_jobs.folding.schema_cache import RegistrySchemas
from spark_jobs.streaming.query_spec import QueryEndpoints, TriggerSettings

LOG = logging.getLogger(__name__)


class StreamContext:
    """One for each job; closes its connections at the end of its `with` block.

    models: the read models by name, as their modules were when last imported.
    """

    def __init__(self, spark: SparkSession, settings: Settings, models: dict[str, ReadModel]) -> None:
        self.spark = spark
        self.settings = settings
        self.models = models
        self.triggers = TriggerSettings.from_settings(settings.stream)
        self.admin = admin_client(settings.kafka.bootstrap_servers)
        self.consumer = log_consumer(settings.kafka.bootstrap_servers)
        self.schema_registry = SchemaRegistry(settings.registry.url)
        self.versions = VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor)
        self._schemas: dict[str, RegistrySchemas] = {}

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close its connections."""
        self.versions.close()
        self.consumer.close()

    def schemas(self, topic: str) -> RegistrySchemas:
        """Return the schema ids of a source topic, shared by all its queries; raises RegistryUnavailableError."""
        if topic not in self._schemas:
            self._schemas[topic] = RegistrySchemas(self.schema_registry, topic)
        return self._schemas[topic]

    def endpoints(self, source_topic: str, sink_topic: str, checkpoint: str) -> QueryEndpoints:
        """Return a query's endpoints; `checkpoint` is a path below the folder of all checkpoints."""
        settings = self.settings
        return QueryEndpoints(
            settings.kafka.bootstrap_servers,
            source_topic,
            sink_topic,
            settings.topics.partitions,
            f"{settings.checkpoints}/{checkpoint}",
        )

    def ensure_topics(self, topics: Sequence[Topic]) -> None:
        """Create the topics that do not exist; raises KafkaUnavailableError."""
        ensure_topics(self.admin, list(topics), self.settings.topics.replication_factor)

    def register_event_types(self, model: ReadModel) -> None:
        """Register the schemas of a read model's event types; raises RegistryUnavailableError.

        A query that knows no id of any of its event types folds only nulls: Spark then drops its whole input without
        reading it, and gives its state other column types, which the checkpoint would keep.
        """
        for schema in model.event_schemas:
            self.schema_registry.register(model.source_topic, schema)

    def reload_model(self, name: str) -> ReadModel:
        """Import a read model's module again and return the model, or the present one where the module cannot be imported.

        Queries that run keep the model that they started with. Raises RegistryUnavailableError.
        """
        try:
            newest = read_model(name, self.settings.read_models_dir, reload=True)
            self.register_event_types(newest)
            # A query that starts has to know the ids of all its event types.
            self.schemas(newest.source_topic).refresh()
        except (KafkaUnavailableError, RegistryUnavailableError):
            raise
        except Exception:
            # An edited module can raise anything; the queries of the other versions must continue.
            LOG.exception("cannot import the module of %s again", name)
            return self.models[name]
        self.models[name] = newest
        return newest
