"""The running query of one version of a read model: events in, state records out."""

from dataclasses import dataclass

from confluent_kafka import Consumer
from pyspark.sql import DataFrame, SparkSession

from include.read_model import ReadModel
from spark_jobs.fold_query import KafkaSource, changelog_stream
from spark_jobs.known_schemas import KnownSchemas
from spark_jobs.supervised_query import Place
from spark_jobs.topic_query import Pace, TopicQuery


@dataclass(frozen=True)
class FoldPlan:
    """What a version's query folds: the read model, the revision of its fold, and the id of its state schema."""

    model: ReadModel
    fold_revision: int
    state_schema_id: int


class VersionQuery(TopicQuery):
    """One version's query; its sink is the version's changelog."""

    def __init__(
        self,
        name: str,
        spark: SparkSession,
        place: Place,
        schemas: KnownSchemas,
        pace: Pace,
        consumer: Consumer,
        plan: FoldPlan,
    ) -> None:
        super().__init__(name, spark, place, schemas, pace, consumer)
        self._plan = plan

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
