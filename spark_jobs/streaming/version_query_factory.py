"""Makes a version's query: the same for the stream driver and for a rebuild's catch-up."""

from dataclasses import dataclass
from typing import TypeVar

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from include.declarations.read_model import ReadModel
from include.errors import SchemaError
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import ensure_topics
from include.settings import Settings
from include.stream.checkpoints import checkpoint_path, query_name
from include.stream.slot_planning import shuffle_partitions
from include.versions.registry import Version
from include.versions.version_lock import acquire
from spark_jobs.folding.fold_fingerprint import incompatibility
from spark_jobs.folding.schema_cache import RegistrySchemas
from spark_jobs.streaming.supervised_query import QueryEndpoints
from spark_jobs.streaming.topic_query import TriggerSettings
from spark_jobs.streaming.version_query import FoldPlan, VersionQuery

# Whoever had the lock before has been told to stop; a query that does not get it is tried again later.
LOCK_WAIT_S = 2.0

Query = TypeVar("Query", bound=VersionQuery)


@dataclass(frozen=True)
class VersionQueries:
    """What every version's query needs: Spark, Kafka, the schema registry."""

    spark: SparkSession
    settings: Settings
    admin: AdminClient
    consumer: Consumer
    registry: SchemaRegistry

    def place(self, model: ReadModel, sink_topic: str, name: str) -> QueryEndpoints:
        """Return where a query of a read model's source reads, writes, and keeps its checkpoint."""
        settings = self.settings
        return QueryEndpoints(
            settings.kafka.bootstrap_servers,
            model.source_topic,
            sink_topic,
            model.partitions(settings.topics),
            f"{settings.checkpoints}/{name}",
        )

    def query(self, kind: type[Query], model: ReadModel, version: Version, schemas: RegistrySchemas) -> Query:
        """Return a version's query, not started yet; refused where the module lacks its fold, or has another one."""
        settings = self.settings
        name = query_name(model.name, version.number)
        reason = self.why_refused(model, version)
        state_schema_id = 0
        # For a version that is refused nothing is made: the module may not even have its state's fields.
        if reason is None:
            topic = model.changelog(version.changelog_topic, settings.topics)
            ensure_topics(self.admin, [topic], settings.topics.replication_factor)
            schema = model.state_schema_of(version.fold_revision)
            try:
                state_schema_id = self.registry.register(version.changelog_topic, schema)
            except SchemaError as error:
                reason = str(error)
        plan = FoldPlan(
            model,
            version.fold_revision,
            state_schema_id,
            shuffle_partitions(settings, model.partitions(settings.topics)),
            lambda: acquire(settings, model.name, version.number, wait_s=LOCK_WAIT_S),
        )
        place = self.place(model, version.changelog_topic, name)
        query = kind(name, self.spark, place, schemas, TriggerSettings.of(settings), self.consumer, plan)
        if reason is not None:
            query.refuse(reason)
        return query

    def why_refused(self, model: ReadModel, version: Version) -> str | None:
        """Return why this module's folds must not go on with a version, or None where they may."""
        checkpoint = checkpoint_path(self.settings, model.name, version.number)
        reason = incompatibility(self.spark, checkpoint, model, version.fold_revision)
        return None if reason is None else f"version {version.number} of {model.name}: {reason}"
