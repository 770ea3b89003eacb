"""Which queries should run: one for every active version that the version registry names."""

import logging
import time

from pyspark.sql import SparkSession

from include.declarations.read_model import ReadModel, read_model
from include.errors import (
    KafkaUnavailableError,
    RegistryUnavailableError,
    RevisionConflictError,
    SettingsError,
)
from include.kafka.log_reading import log_consumer
from include.kafka.schema_registry import SchemaRegistry
from include.kafka.topics import (
    PROGRESS_TOPIC,
    admin_client,
    changelog,
    dead_letter_topic,
    ensure_topics,
    partition_count,
)
from include.settings import Settings
from include.stream.checkpoints import query_name
from include.stream.slot_planning import most_queries, queries_with_slots
from include.versions.registry import ReadModelVersions, Stage, Version, VersionRegistry, first_version
from spark_jobs.folding.schema_cache import RegistrySchemas
from spark_jobs.streaming.dead_letter_query import DeadLetterQuery
from spark_jobs.streaming.supervised_query import Phase, SupervisedQuery
from spark_jobs.streaming.topic_query import TriggerSettings
from spark_jobs.streaming.version_query import VersionQuery
from spark_jobs.streaming.version_query_factory import VersionQueries

LOG = logging.getLogger(__name__)
# A version that was refused is looked at again this often: its fold may be there by now.
REFUSED_RETRY_S = 5.0
NO_SLOTS = (
    "there are no task slots left for it: retire a previous version (`./foldlake versions` lists them), or raise "
    "FOLDLAKE_STREAM_SPARE_QUERIES and run `./foldlake up`"
)


class ActiveVersions:
    """Makes and keeps the queries of all active versions of the declared read models."""

    def __init__(self, spark: SparkSession, settings: Settings, models: dict[str, ReadModel]) -> None:
        self._spark = spark
        self._settings = settings
        self._models = models
        self._admin = admin_client(settings.kafka.bootstrap_servers)
        self._consumer = log_consumer(settings.kafka.bootstrap_servers)
        self._registry = SchemaRegistry(settings.registry.url)
        self._versions = VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor)
        self._schemas: dict[str, RegistrySchemas] = {}
        self._queries = VersionQueries(spark, settings, self._admin, self._consumer, self._registry)
        self._look_again_s: dict[str, float] = {}  # by query name, of those that were refused

    def prepare(self) -> None:
        """Make the topics of every read model, register its event types, and make its first version where it has none.

        Raises SettingsError when a source topic has another number of partitions than the settings say.
        """
        self._versions.ensure_topic()
        ensure_topics(self._admin, [changelog(PROGRESS_TOPIC, 1)], self._settings.topics.replication_factor)
        known = self._versions.read()
        for model in self._models.values():
            self._ensure_topics(model)
            self._register_event_types(model)
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
        versions = {
            query_name(model.name, version.number): (model, version)
            for model in self._models.values()
            if model.name in records
            for version in records[model.name].active
        }
        slots = queries_with_slots(
            {name: version for name, (_, version) in versions.items()},
            {name for name, query in running.items() if query.phase is not Phase.REFUSED},
            most_queries(self._settings, len(self._models)),
        )
        wanted: dict[str, SupervisedQuery] = {}
        for name, (model, version) in versions.items():
            try:
                query = self._query(running.get(name), model, version, has_slots=name in slots)
            except (KafkaUnavailableError, RegistryUnavailableError) as error:
                # The others go on meanwhile.
                LOG.warning("query %s cannot be begun yet: %s", name, error)
                if name in running:
                    wanted[name] = running[name]
                continue
            query.is_essential = version.stage is Stage.LIVE
            wanted[name] = query
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
                    self._queries.place(models[0], dead_letter_topic(topic), f"dead-letter/{topic}"),
                    schemas,
                    TriggerSettings.of(self._settings),
                    self._consumer,
                    tuple(readers.values()),
                )
            )
        return queries

    def _query(
        self, running: SupervisedQuery | None, model: ReadModel, version: Version, *, has_slots: bool
    ) -> SupervisedQuery:
        """Return the query of a version: the running one, unless it was refused and no longer need be."""
        if running is not None and running.phase is not Phase.REFUSED:
            return running
        if not has_slots:
            query = running or self._new_query(model, version)
            if query.last_error != NO_SLOTS:
                query.refuse(NO_SLOTS)
            return query
        if running is None and version.fold_revision in model.folds:
            return self._new_query(model, version)
        name = query_name(model.name, version.number)
        if running is not None and time.monotonic() < self._look_again_s.get(name, 0.0):
            return running
        self._look_again_s[name] = time.monotonic() + REFUSED_RETRY_S
        newest = self._imported_again(model)
        if running is not None and (reason := self._queries.why_refused(newest, version)):
            if reason != running.last_error:
                running.refuse(reason)
            return running
        return self._new_query(newest, version)

    def _new_query(self, model: ReadModel, version: Version) -> VersionQuery:
        return self._queries.query(VersionQuery, model, version, self._schemas[model.source_topic])

    def _imported_again(self, model: ReadModel) -> ReadModel:
        """Return a read model as its module is on disk now; queries that run keep the one that they began with."""
        try:
            newest = read_model(model.name, self._settings.read_models_dir, reload=True)
            self._register_event_types(newest)
        except (KafkaUnavailableError, RegistryUnavailableError):
            raise
        except Exception:
            # Whatever an edited module raises: the queries of the other versions must go on.
            LOG.exception("the module of %s cannot be taken in again", model.name)
            return model
        self._models[model.name] = newest
        # A query that begins has to know the ids of all its event types.
        self._schemas[newest.source_topic] = RegistrySchemas(self._registry, newest.source_topic)
        return newest

    def _register_event_types(self, model: ReadModel) -> None:
        # A query that knows no id of any of its event types has only nulls to fold: Spark drops its whole input without
        # looking at it, and gives its state other column types, which the checkpoint would keep.
        for schema in model.event_schemas:
            self._registry.register(model.source_topic, schema)

    def _ensure_topics(self, model: ReadModel) -> None:
        settings = self._settings.topics
        wanted = model.partitions(settings)
        ensure_topics(self._admin, model.source_topics(settings), settings.replication_factor)
        found = partition_count(self._admin, model.source_topic)
        if found != wanted:
            where = (
                f"the read model {model.name} declares"
                if model.topic.partitions
                else "FOLDLAKE_PARTITIONS is"
            )
            message = (
                f"Topic {model.source_topic} has {found} partitions, but {where} {wanted}: "
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
