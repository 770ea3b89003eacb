"""Which queries should run: one for every active version that the version registry names."""

import logging

from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from include.errors import KafkaUnavailableError, RevisionConflictError, SettingsError
from include.kafka_log import log_consumer
from include.read_model import ReadModel
from include.schema_registry import SchemaRegistry
from include.settings import Settings
from include.topics import (
    PROGRESS_TOPIC,
    changelog,
    dead_letter_topic,
    ensure_topics,
    partition_count,
    source_topics,
)
from include.versions import ReadModelVersions, Version, VersionRegistry, first_version
from spark_jobs.dead_letter_query import DeadLetterQuery
from spark_jobs.known_schemas import RegistrySchemas
from spark_jobs.supervised_query import Place, SupervisedQuery
from spark_jobs.topic_query import Pace
from spark_jobs.version_query import FoldPlan, VersionQuery

LOG = logging.getLogger(__name__)


def query_name(model_name: str, version: int) -> str:
    """Return the name of a version's query, which is also its checkpoint's path below the root."""
    return f"{model_name}/v{version}"


class ActiveVersions:
    """Makes and keeps the queries of all active versions of the declared read models."""

    def __init__(self, spark: SparkSession, settings: Settings, models: dict[str, ReadModel]) -> None:
        self._spark = spark
        self._settings = settings
        self._models = models
        self._admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers, "log_level": 3})
        self._consumer = log_consumer(settings.bootstrap_servers)
        self._registry = SchemaRegistry(settings.registry_url)
        self._versions = VersionRegistry(settings.bootstrap_servers, settings.replication_factor)
        self._schemas: dict[str, RegistrySchemas] = {}

    def prepare(self) -> None:
        """Make the topics of every read model, register its event types, and make its first version where it has none.

        Raises SettingsError when a source topic has another number of partitions than the settings say.
        """
        self._versions.ensure_topic()
        ensure_topics(self._admin, [changelog(PROGRESS_TOPIC, 1)], self._settings.replication_factor)
        known = self._versions.read()
        for model in self._models.values():
            self._ensure_topics(model)
            # A query that knows no id of any of its event types has only nulls to fold: Spark drops its whole input without
            # looking at it, and gives its state other column types, which the checkpoint would keep.
            for schema in model.event_schemas:
                self._registry.register(model.source_topic, schema)
            if model.source_topic not in self._schemas:
                self._schemas[model.source_topic] = RegistrySchemas(self._registry, model.source_topic)
            if model.name not in known:
                self._create_first_version(model)

    def reconcile(self, running: dict[str, SupervisedQuery]) -> dict[str, SupervisedQuery]:
        """Return the queries that should run now; those that run already are kept. The same ones when the broker is away."""
        try:
            records = self._versions.read()
        except KafkaUnavailableError as error:
            LOG.warning("the version registry cannot be read, so nothing is changed: %s", error)
            return running
        wanted: dict[str, SupervisedQuery] = {}
        for model in self._models.values():
            record = records.get(model.name)
            for version in () if record is None else record.active:
                name = query_name(model.name, version.number)
                wanted[name] = running.get(name) or self._query(name, model, version)
        return wanted

    def dead_letter_queries(self) -> list[DeadLetterQuery]:
        """Return one query for each source topic, which knows the event types of all its read models."""
        queries = []
        for topic, schemas in self._schemas.items():
            models = [m for m in self._models.values() if m.source_topic == topic]
            readers = {reader.name: reader for model in models for reader in model.event_schemas}
            queries.append(
                DeadLetterQuery(
                    self._spark,
                    self._place(topic, dead_letter_topic(topic), f"dead-letter/{topic}"),
                    schemas,
                    Pace.of(self._settings),
                    self._consumer,
                    tuple(readers.values()),
                )
            )
        return queries

    def _query(self, name: str, model: ReadModel, version: Version) -> VersionQuery:
        settings = self._settings
        ensure_topics(
            self._admin,
            [changelog(version.changelog_topic, settings.partitions)],
            settings.replication_factor,
        )
        state_schema_id = self._registry.register(version.changelog_topic, model.state_schema)
        query = VersionQuery(
            name,
            self._spark,
            self._place(model.source_topic, version.changelog_topic, name),
            self._schemas[model.source_topic],
            Pace.of(settings),
            self._consumer,
            FoldPlan(model, version.fold_revision, state_schema_id),
        )
        if version.fold_revision not in model.folds:
            query.refuse(
                f"version {version.number} of {model.name} was built with fold revision {version.fold_revision}, and the "
                f"module has only {sorted(model.folds)}: put it back"
            )
        return query

    def _place(self, source_topic: str, sink_topic: str, name: str) -> Place:
        settings = self._settings
        return Place(
            settings.bootstrap_servers,
            source_topic,
            sink_topic,
            settings.partitions,
            f"{settings.checkpoints}/{name}",
        )

    def _ensure_topics(self, model: ReadModel) -> None:
        wanted = self._settings.partitions
        ensure_topics(
            self._admin, source_topics(model.source_topic, wanted), self._settings.replication_factor
        )
        found = partition_count(self._admin, model.source_topic)
        if found != wanted:
            message = (
                f"Topic {model.source_topic} has {found} partitions, but FOLDLAKE_PARTITIONS is {wanted}: "
                f"set it to {found}. A version's checkpoint and changelog keep the number that they began with."
            )
            raise SettingsError(message)

    def _create_first_version(self, model: ReadModel) -> None:
        record: ReadModelVersions = first_version(model.name, model.newest_fold_revision)
        try:
            self._versions.compare_and_set(record, expected_revision=0)
        except RevisionConflictError:
            LOG.info("somebody else created the first version of %s", model.name)
            return
        LOG.info("created version 1 of %s, live", model.name)
