"""The running query of one version of a read model: events in, state records out."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import Consumer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from include.declarations.read_model import ReadModel
from spark_jobs.folding.fold_fingerprint import keep_rule
from spark_jobs.folding.fold_query import KafkaSource, changelog_stream
from spark_jobs.folding.schema_cache import KnownSchemas
from spark_jobs.streaming.supervised_query import Phase, QueryEndpoints
from spark_jobs.streaming.topic_query import TopicQuery, TriggerSettings


@dataclass(frozen=True)
class FoldPlan:
    """What a version's query folds: the read model, the revision of its fold, and the id of its state schema.

    shuffle_partitions: the number of partitions of its state; a checkpoint keeps the number that it began with.
    lock: takes the version's lock and returns its file descriptor: held from before the first start until the query is
        stopped. Without one (the driver alone), the caller keeps other writers out.
    """

    model: ReadModel
    fold_revision: int
    state_schema_id: int
    shuffle_partitions: int
    lock: Callable[[], int] | None = None


class VersionQuery(TopicQuery):
    """One version's query; its sink is the version's changelog."""

    def __init__(
        self,
        name: str,
        spark: SparkSession,
        place: QueryEndpoints,
        schemas: KnownSchemas,
        pace: TriggerSettings,
        consumer: Consumer,
        plan: FoldPlan,
    ) -> None:
        super().__init__(name, spark, place, schemas, pace, consumer)
        self._plan = plan
        self._lock_descriptor: int | None = None

    def stop(self) -> None:
        """Stop for good, and let whoever waits for the version's lock have it."""
        super().stop()
        if self._lock_descriptor is not None:
            os.close(self._lock_descriptor)
            self._lock_descriptor = None

    def _start(self) -> tuple[StreamingQuery, Phase]:
        if self._plan.lock is not None and self._lock_descriptor is None:
            self._lock_descriptor = self._plan.lock()
        keep_rule(self._spark, self._place.checkpoint, self._plan.model, self._plan.fold_revision)
        # A query copies the session's settings when it starts; queries start one after another.
        self._spark.conf.set("spark.sql.shuffle.partitions", str(self._plan.shuffle_partitions))
        return super()._start()

    def _records(self, source: KafkaSource) -> DataFrame:
        plan = self._plan
        return changelog_stream(
            self._spark,
            plan.model,
            plan.fold_revision,
            source,
            self._schemas.schema_ids,
            plan.state_schema_id,
        )
