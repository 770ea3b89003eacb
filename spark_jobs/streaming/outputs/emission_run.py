"""The run of an emission's query for one version: what it writes, and the handover of the consumers' topic to the live version."""

import logging
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from pyspark.sql import DataFrame

from include.declarations.kinds.emission import Emission
from include.declarations.read_model import ReadModel
from include.errors import SchemaError
from include.kafka.origins import WrittenRecords
from include.kafka.schema_ids import SchemaIds
from include.position import Offsets
from include.stream.checkpoints import handover_path, written_note_path
from include.stream.pseudonym_key import pseudonym_key
from include.versions.version_lock import emission_lock
from include.versions.version_record import Version
from spark_jobs.folding.fold_fingerprint import has_exact_sums, incompatibility, store_fingerprint
from spark_jobs.routing.keyed_query import KeyedQuery
from spark_jobs.routing.keyed_rules import emission_rule
from spark_jobs.routing.written_outputs import WrittenOutputs
from spark_jobs.runtime.checkpoint import committed_offsets, read_text, write_text
from spark_jobs.streaming.outputs.published_topic import CONSUMERS, PublishedTopic, TopicOwner
from spark_jobs.streaming.outputs.sink_delivery import DELIVERED_AFTER_S
from spark_jobs.streaming.outputs.takeover_check import TakeoverCheck
from spark_jobs.streaming.query_spec import QueryEndpoints, StartPostponedError, StartRefusedError
from spark_jobs.streaming.stream_context import StreamContext

LOG = logging.getLogger(__name__)

LOCK_WAIT_S = 2.0


class EmissionRun:
    """The computation of the query, and what it has written.

    default_tasks: number of shuffle tasks of an emission's first query. coverage: of the live version that emits to the consumers' topic;
        None: the version emits to its own topic.
    """

    def __init__(
        self,
        context: StreamContext,
        emission: Emission,
        model: ReadModel,
        version: Version,
        endpoints: QueryEndpoints,
        default_tasks: int,
        coverage: TakeoverCheck | None,
    ) -> None:
        self._context = context
        self._emission = emission
        self._model = model
        self._version = version
        self._endpoints = endpoints
        self._tasks = default_tasks
        self._coverage = coverage
        self._consumers = PublishedTopic(context, emission)
        self._schema_id = 0
        self._written: WrittenOutputs | None = None

    def prepare(self) -> None:
        """Create the topics, register the schema of the outputs, and check the fold.

        Raises StartRefusedError if the registry rejects a schema, or the read model no longer has the version's fold.
        """
        context, emission, version = self._context, self._emission, self._version
        reason = incompatibility(
            context.spark, self._endpoints.checkpoint, context.models[self._model.name], version.fold_revision
        )
        if reason is not None:
            # The query of the version's fold reloads the module.
            raise StartRefusedError(f"version {version.number} of {self._model.name}: {reason}")
        self._model = context.models[self._model.name].reading(version.source_topic, version.starts)
        topics = context.settings.topics
        names = dict.fromkeys((emission.output_topic, self._endpoints.sink_topic))
        context.ensure_topics([emission.topic_named(name, topics) for name in names])
        try:
            context.register_event_types(self._model)
            for name in names:
                self._schema_id = context.schema_registry.register(name, emission.output_schema)
        except SchemaError as error:
            raise StartRefusedError(str(error)) from error
        # The lanes of what is in these topics are numbered by this, for as long as they exist.
        source_topic, own_topic = self._model.source_topic, emission.version_topic(version.number)
        for name in (emission.output_topic, own_topic):
            tasks = self._consumers.written_tasks(name, source_topic)
            if tasks is not None:
                self._tasks = tasks
                break
        self._written = self._outputs()

    def records(self, source: DataFrame, schema_ids: SchemaIds) -> DataFrame:
        """Return the outputs that are not written yet."""
        written = self._sink.read()
        self._context.spark.conf.set("spark.sql.shuffle.partitions", str(self._tasks))
        query = KeyedQuery(
            emission_rule(self._emission, self._model, self._version.fold_revision),
            self._endpoints.partitions,
            self._endpoints.sink_partitions,
            self._tasks,
            self._schema_id,
            pseudonym_key(self._context.settings),
            written,
            self._endpoints.sink_topic,
            has_exact_sums(self._context.spark, self._endpoints.checkpoint),
        )
        return query.records(source, schema_ids)

    def note(self) -> None:
        """Note what is written."""
        self._sink.note()

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Hold the checkpoint's lock and, of the live version, that of the consumers' topic, which it takes over."""
        home, name, version = self._context.settings.home, self._emission.name, self._version
        topic = self._endpoints.sink_topic
        with ExitStack() as locks:
            locks.enter_context(emission_lock(home, name, version.number, wait_s=LOCK_WAIT_S))
            if self._coverage is not None:
                locks.enter_context(emission_lock(home, name, CONSUMERS, wait_s=LOCK_WAIT_S))
                _require_delivered(self._context.stopped_s.get(topic))
                self._take_over(self._coverage)
            store_fingerprint(
                self._context.spark, self._endpoints.checkpoint, self._model, version.fold_revision
            )
            try:
                yield
            finally:
                self._context.stopped_s[topic] = time.monotonic()

    def _take_over(self, coverage: TakeoverCheck) -> None:
        """Append to the consumers' topic what the version emitted to its own, unless that was done when it became live."""
        spark, version, consumers = self._context.spark, self._version, self._consumers
        source_topic = self._model.source_topic
        writer = consumers.writer(source_topic)
        if writer.change is not None:
            # The driver was killed meanwhile; another version may have become live since.
            consumers.complete(writer.change)
        if writer.next_source_topic != source_topic:
            consumers.complete(coverage.change_from(writer.next_source_topic))
        done = handover_path(self._endpoints.checkpoint)
        if read_text(spark, done) == version.live_since:
            return
        LOG.info("v%d of %s emits to consumers from now on", version.number, self._model.name)
        consumers.append_newer(version.number, self._records)
        consumers.set_writer(TopicOwner(source_topic))
        write_text(spark, done, version.live_since)

    @property
    def _sink(self) -> WrittenOutputs:
        if self._written is None:
            raise RuntimeError("the query has not been prepared")
        return self._written

    @property
    def _records(self) -> WrittenRecords:
        return WrittenRecords(self._emission.name, self._model.source_topic, self._tasks)

    def _outputs(self) -> WrittenOutputs:
        if self._coverage is not None:
            return self._consumers.outputs(self._records, self._committed)
        context = self._context
        return WrittenOutputs(
            lambda: context.spark,
            context.consumer,
            written_note_path(self._endpoints.checkpoint),
            self._endpoints.sink_topic,
            self._endpoints.sink_partitions,
            self._records,
            self._committed,
        )

    def _committed(self) -> Offsets:
        return committed_offsets(
            self._context.spark, self._endpoints.checkpoint, self._endpoints.source_topic
        )


def _require_delivered(stopped_s: float | None) -> None:
    """Raise StartPostponedError while records may still arrive that this job sent for the version that was live before."""
    if stopped_s is None:
        return
    wait_s = stopped_s + DELIVERED_AFTER_S - time.monotonic()
    if wait_s > 0:
        raise StartPostponedError(wait_s)
