"""The query of an emission: events -> one output for each, with the state of its key after it.

In real-time mode, a grouped aggregation gives a row for each event, in the order of its key: the aggregate after this event. Beside the
state, each group keeps its newest event as it is in the source, which the row therefore contains as well. In batches, the same query
would give one row for each key.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, concat, lit, max_by, pmod, struct
from pyspark.sql.functions import hash as spark_hash

from include.declarations.emission import Emission
from include.declarations.read_model import ReadModel
from include.declarations.rekeying import record_key
from include.kafka.origins import TASK_HEADER, Origin, Pair
from spark_jobs.folding.decode import EventDecoder, SchemaIds, good_events
from spark_jobs.folding.fold_query import state_columns
from spark_jobs.folding.key_partition import partition_of_key
from spark_jobs.routing.origin_columns import is_new, origin_headers
from spark_jobs.routing.output_record import output_key, output_value, require_fields
from spark_jobs.routing.privacy import with_privacy

GROUP = "model_key"
EVENT = "newest_event"
# The column in `Emission.fields`.
STATE = "state"
TASK = "shuffle_task"


@dataclass(frozen=True)
class EmissionQuery:
    """The computation of an emission's query.

    revision: of the fold. partitions: of the source topic. output_partitions: of the output topic. tasks: number of shuffle tasks.
    schema_id: of the output's schema. pseudonym_key: the key of the hashes that replace personal values.
    written: the newest origin of each pair; what is at or below it is not written again.
    """

    emission: Emission
    model: ReadModel
    revision: int
    partitions: int
    output_partitions: int
    tasks: int
    schema_id: int
    pseudonym_key: bytes
    written: Mapping[Pair, Origin]

    def records(self, source: DataFrame, schema_ids: SchemaIds) -> DataFrame:
        """Return the records for the output topic. Raises ReadModelError if the emission does not give the fields of its schema."""
        decoder = EventDecoder(self.model.event_schemas, schema_ids, self.partitions, record_key(self.model))
        states = self._states(good_events(decoder.decode(source)), decoder.record_columns)
        events = decoder.decode(states, also=(STATE, TASK))
        if self.emission.where is not None:
            events = events.where(coalesce(self.emission.where(), lit(False)))  # noqa: FBT003 - a column
        lane = col("source_partition") * lit(self.tasks) + col(TASK)
        task = concat(col(TASK).cast("string"), lit(f"/{self.tasks}"))
        new = is_new(self.written, self.partitions * self.tasks, self.output_partitions, lane)
        return (
            self._outputs(events)
            .withColumn("output_partition", partition_of_key(col("output_key"), self.output_partitions))
            .where(new)
            .select(
                col("output_key").alias("key"),
                col("output_value").alias("value"),
                col("output_partition").alias("partition"),
                origin_headers(self.emission.name, self.model.source_topic, {TASK_HEADER: task}).alias(
                    "headers"
                ),
            )
        )

    def _states(self, events: DataFrame, record: tuple[str, ...]) -> DataFrame:
        """Return each key's newest event, as these columns of the record in the source, with the columns `state` and `shuffle_task`."""
        aggregates = state_columns(self.model, self.revision)
        newest = max_by(struct(*record), col("offset")).alias(EVENT)
        states = events.groupBy(self.model.key().cast("string").alias(GROUP)).agg(*aggregates, newest)
        fields = [name for name in states.columns if name not in {GROUP, EVENT}]
        return states.select(
            f"{EVENT}.*",
            struct(*fields).alias(STATE),
            # Spark assigns keys to shuffle tasks by this hash.
            pmod(spark_hash(GROUP), lit(self.tasks)).alias(TASK),
        )

    def _outputs(self, events: DataFrame) -> DataFrame:
        emission, schema = self.emission, self.emission.output_schema
        name = f"Emission {emission.name}"
        fields: Mapping[str, Column] = emission.fields(self.revision)
        require_fields(name, schema, fields)
        fields = with_privacy(
            name, schema, self.model.event_schemas, events, fields, self.pseudonym_key, item=None
        )
        return events.select(
            col("partition").alias("source_partition"),
            col("offset").alias("source_offset"),
            lit(0).alias("source_index"),
            TASK,
            output_key(name, fields[str(schema.key_field)], str(schema.key_field)).alias("output_key"),
            output_value(name, schema, self.schema_id, fields, events).alias("output_value"),
        )
