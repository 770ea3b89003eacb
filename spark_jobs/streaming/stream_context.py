"""The context of query specifications: settings, read models, Kafka, the schema registry and the version registry."""

import logging
from collections.abc import Callable, Sequence
from typing import Self

from pyspark.sql import SparkSession

from include.declarations.catalog import Catalog
from include.declarations.event_types.topic_events import EventFormat
from include.declarations.kinds.flow import Flow
from include.declarations.latency_override import reload_for_stream
from include.declarations.read_model import ReadModel
from include.errors import KafkaUnavailableError, RegistryUnavailableError
from include.kafka.log_reading import end_offsets, log_consumer
from include.kafka.registry.schema_rejections import SchemaRejections
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import Topic, admin_client, ensure_topics
from include.kafka.wire_format import header
from include.position import Offsets
from include.settings import Settings
from include.versions.registry import VersionRegistry
from spark_jobs.folding.schema_cache import KnownSchemas, RegistrySchemas
from spark_jobs.routing.topic_switch import TakeoverState
from spark_jobs.streaming.query_spec import QueryEndpoints, TriggerSettings

LOG = logging.getLogger(__name__)


class StreamContext:
    """The connections and read models of one job; closes the connections at the end of its `with` block.

    session: returns the Spark session. Everything but queries works without it, so that Kafka is asked while Spark starts.
    catalog: the read models, as of the last import of their modules, and the routes. process: names the job in what it writes about schema
        ids. is_driver: whether the job is the stream driver.
    takeovers: checkpoint of an emission's version -> what is known of its take-over of the consumers' topic.
    stopped_s: consumers' topic -> when this job stopped writing to it, by the monotonic clock.
    """

    def __init__(
        self,
        session: Callable[[], SparkSession],
        settings: Settings,
        catalog: Catalog,
        process: str,
        *,
        is_driver: bool = False,
    ) -> None:
        self._session = session
        self.settings = settings
        self.catalog = catalog
        self.triggers = TriggerSettings.from_settings(settings.stream)
        self.admin = admin_client(settings.kafka_connection)
        self.consumer = log_consumer(settings.kafka_connection)
        self.schema_registry = SchemaRegistry(settings.registry.connection)
        self.versions = VersionRegistry(settings.kafka_connection, settings.topics.replication_factor)
        self._rejections = SchemaRejections(
            settings.kafka_connection, process, settings.topics.replication_factor
        )
        self._is_driver = is_driver
        self._schemas: dict[str, KnownSchemas] = {}
        self.takeovers: dict[str, TakeoverState] = {}
        self.stopped_s: dict[str, float] = {}

    def __enter__(self) -> Self:
        """Return the context."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close the connections."""
        self.versions.close()
        self.consumer.close()

    @property
    def models(self) -> dict[str, ReadModel]:
        """The read models by name."""
        return self.catalog.models

    @property
    def spark(self) -> SparkSession:
        """The Spark session; waits until it exists."""
        return self._session()

    def schemas(self, topic: str) -> KnownSchemas:
        """Return the schema ids of a source topic, shared by all its queries; none of one in JSON.

        Raises RegistryUnavailableError, KafkaUnavailableError.
        """
        if topic not in self._schemas and self.catalog.event_format(topic) is EventFormat.JSON:
            self._schemas[topic] = KnownSchemas({})
        if topic not in self._schemas:
            self._schemas[topic] = RegistrySchemas(
                self.schema_registry,
                topic,
                self._rejections,
                lambda: Offsets.of_ends(end_offsets(self.consumer, topic, self._partitions(topic))),
                leaves_open=self._is_driver,
            )
        return self._schemas[topic]

    def endpoints(self, source_topic: str, sink_topic: str, checkpoint: str) -> QueryEndpoints:
        """Return a query's endpoints; `checkpoint` is a path relative to the folder of all checkpoints."""
        settings = self.settings
        return QueryEndpoints(
            settings.kafka_connection,
            source_topic,
            sink_topic,
            self._partitions(source_topic),
            f"{settings.checkpoints}/{checkpoint}",
        )

    def _partitions(self, source_topic: str) -> int:
        return self.catalog.partitions(source_topic, self.settings.topics)

    def ensure_topics(self, topics: Sequence[Topic]) -> None:
        """Create the topics that do not exist; raises KafkaUnavailableError."""
        ensure_topics(self.admin, list(topics), self.settings.topics.replication_factor)

    def register_event_types(self, declaration: ReadModel | Flow) -> None:
        """Register the schemas of the event types that a read model or a flow reads, unless they are in JSON.

        A query without a known id for any of its event types would fold only nulls: Spark would then drop its whole input
        without reading it, and its state would have other column types, which the checkpoint would fix. Raises
        RegistryUnavailableError; SchemaError when the registry rejects a schema.
        """
        if self.catalog.event_format(declaration.source_topic) is EventFormat.JSON:
            return
        topic = declaration.source_topic
        ids = [self.schema_registry.register(topic, schema) for schema in declaration.event_schemas]
        # The registry may fail to list them.
        self.schemas(topic).learn({header(schema_id) for schema_id in ids})

    def reload_model(self, name: str) -> ReadModel:
        """Reload a read model's module and return the model, or the current model if the module cannot be imported.

        Running queries keep the model that they started with. Raises RegistryUnavailableError.
        """
        try:
            newest = reload_for_stream(name, self.settings)
            self.register_event_types(newest)
            # A query must know the ids of all of its event types when it starts.
            for topic in self.catalog.topic_versions(newest.source_topic):
                self.schemas(topic).refresh()
        except (KafkaUnavailableError, RegistryUnavailableError):
            raise
        except Exception:
            # An edited module can raise anything; the queries of the other versions must continue.
            LOG.exception("cannot reload the module of %s: keeping the current one", name)
            return self.models[name]
        self.models[name] = newest
        return newest
