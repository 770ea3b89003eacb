"""The source topic of a version, as a check reads it: the age of events, and those that the version folds."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from include.declarations.read_model import ReadModel
from include.kafka.log_reading import age_beyond_s, log_consumer
from include.position import Offsets
from include.settings import Settings
from include.spark.lake_config import DECODE_ONCE
from spark_jobs.folding.expressions.columns import column_of
from spark_jobs.folding.replay import IdsOf, replayed_events, with_needed_schema_ids
from spark_jobs.runtime.session import session_settings

T = TypeVar("T")
# The read model's key, beside the columns of an event.
MODEL_KEY = "record:model_key"


@dataclass(frozen=True)
class SourceLog:
    """The source topic of a version, and the events that the version folds.

    model: with the source and the start of the version. revision: of its fold.
    """

    spark: SparkSession
    settings: Settings
    model: ReadModel
    revision: int

    def age_beyond_s(self, offsets: Offsets, ends: Offsets) -> float:
        """Return the age of the oldest event at or after `offsets` and below `ends`; 0 if there is none."""
        with closing(log_consumer(self.settings.kafka_connection)) as consumer:
            return age_beyond_s(consumer, self.model.source_topic, offsets, ends)

    def read(self, job: Callable[[DataFrame], T], until: Offsets, since: Offsets | None = None) -> T:
        """Run a job on the events up to some end offsets, from the first one that counts or from `since`; return its result.

        Each event has MODEL_KEY, too. The job is repeated if the log has schema ids that are not the topic's.
        """

        def run(ids_of: IdsOf) -> T:
            events = replayed_events(
                self.spark, self.settings, self.model, until, since, revision=self.revision, ids_of=ids_of
            )
            return job(events.withColumn(MODEL_KEY, column_of(self.model.key).cast("string")))

        with session_settings(self.spark, DECODE_ONCE):
            return with_needed_schema_ids(run)
