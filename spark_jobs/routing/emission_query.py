"""The query of an emission: events -> one output for each, with the state of its key after it.

In real-time mode, a grouped aggregation gives a row for each event, in the order of its key: the aggregate after this event. Beside the
state, each group keeps its newest event as it is in the source, which the row therefore contains as well. In batches, the same query
would give one row for each key.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, concat, length, lit, max_by, pmod, sha2, struct, when
from pyspark.sql.functions import hash as spark_hash

from include.declarations.emission import Emission
from include.declarations.event_types.event_columns import KEY, OFFSET, PARTITION, VALUE
from include.declarations.read_model import ReadModel
from include.declarations.rekeying import record_key
from include.kafka.dead_letters import (
    FAILURE_HEADER,
    REASON_HEADER,
    VALUE_BYTES_HEADER,
    VALUE_SHA256_HEADER,
)
from include.kafka.origins import TASK_HEADER, LanePartition, OutputOrigin
from include.kafka.topics import dead_letter_topic
from spark_jobs.folding.decode import FAILURE, EventDecoder, Reason, SchemaIds, good_events
from spark_jobs.folding.expressions.event_frames import with_name
from spark_jobs.folding.expressions.failed_expressions import required_columns
from spark_jobs.folding.expressions.rules import column_of, field_columns
from spark_jobs.folding.fold_query import fold_failure, state_columns
from spark_jobs.folding.key_partition import partition_of_key
from spark_jobs.folding.written_states import FAILED, aggregated_states
from spark_jobs.routing.origin_columns import is_new, origin_headers
from spark_jobs.routing.output_record import (
    harmless,
    output_failure,
    output_key,
    output_value,
    record_failures,
    require_fields,
)
from spark_jobs.routing.privacy import with_privacy

GROUP = "record:model_key"
EVENT = "record:newest_event"
# The struct of the state, in `Emission.fields` as STATE_NAME.
STATE = "record:state"
STATE_NAME = "state"
TASK = "record:shuffle_task"
# The columns of a record for the sink.
RECORD = ("key", "value", "partition", "headers", "topic")


@dataclass(frozen=True)
class EmissionQuery:
    """The computation of an emission's query.

    revision: of the fold. partitions: of the source topic. output_partitions: of the output topic. tasks: number of shuffle tasks.
    schema_id: of the output's schema. pseudonym_key: the key of the hashes that replace personal values.
    written: the newest origin of each pair; what is at or below it is not written again. topic: the output topic.
    is_exact: whether the state has the parts of exact sums (see aggregated_states).
    """

    emission: Emission
    model: ReadModel
    revision: int
    partitions: int
    output_partitions: int
    tasks: int
    schema_id: int
    pseudonym_key: bytes
    written: Mapping[LanePartition, OutputOrigin]
    topic: str = ""
    is_exact: bool = True

    def records(self, source: DataFrame, schema_ids: SchemaIds) -> DataFrame:
        """Return the records for the output topic, and the dead letters of events for which an expression of the emission fails.

        The column `topic` tells them apart. Raises ReadModelError if the emission does not give the fields of its schema.
        """
        decoder = EventDecoder(self.model.event_schemas, schema_ids, self.partitions, record_key(self.model))
        decoded = decoder.decode(source)
        folded = good_events(decoded, failure=fold_failure(self.model, self.revision, decoded))
        states = self._states(folded, decoder.record_columns)
        # The state hides an event's field of this name: a field that is added to the schema does not change what an emission reads.
        of_state = (FAILED,) if FAILED in states.columns else ()
        events = with_name(decoder.decode(states, also=(STATE, TASK, *of_state)), STATE_NAME, STATE)
        outputs = self._outputs(events).withColumn(
            "output_partition", partition_of_key(col("output_key"), self.output_partitions)
        )
        lane = col("source_partition") * lit(self.tasks) + col(TASK)
        new = is_new(self.written, self.partitions * self.tasks, self.output_partitions, lane)
        if FAILURE not in outputs.columns:
            return outputs.where(new).select(*self._record())
        failed = col(FAILURE).isNotNull()
        letter = dict(zip(RECORD, self._letter(), strict=True))
        columns = [
            when(failed, letter[name]).otherwise(column).alias(name)
            for name, column in zip(RECORD, self._record(), strict=True)
        ]
        return outputs.where(failed | new).select(*columns)

    def _record(self) -> list[Column]:
        """Return an output as a record: the columns RECORD."""
        task = {TASK_HEADER: concat(col(TASK).cast("string"), lit(f"/{self.tasks}"))}
        return [
            col("output_key").alias("key"),
            col("output_value").alias("value"),
            col("output_partition").alias("partition"),
            origin_headers(self.emission.name, self.model.source_topic, task).alias("headers"),
            lit(self.topic).alias("topic"),
        ]

    def _letter(self) -> list[Column]:
        """Return an event without an output as a dead letter: a reference, because it is on the topic and has been folded."""
        others = {
            REASON_HEADER: lit(Reason.FAILED_EXPRESSION.value),
            FAILURE_HEADER: col(FAILURE),
            VALUE_BYTES_HEADER: length(VALUE).cast("string"),
            VALUE_SHA256_HEADER: sha2(col(VALUE), 256),
        }
        return [
            col(KEY),
            lit(None).cast("binary"),
            col("source_partition"),
            origin_headers(self.emission.name, self.model.source_topic, others),
            lit(dead_letter_topic(self.model.source_topic)),
        ]

    def _states(self, events: DataFrame, record: Mapping[str, str]) -> DataFrame:
        """Return each key's newest event, as these columns of the record in the source, with the columns STATE and TASK, and FAILED if a state can fail."""
        aggregates = state_columns(self.model, self.revision)
        event = struct(*(col(column).alias(name) for column, name in record.items()))
        newest = max_by(event, col(OFFSET)).alias(EVENT)
        groups = events.groupBy(column_of(self.model.key).cast("string").alias(GROUP))
        states = aggregated_states(groups, aggregates, [newest], check=None, is_exact=self.is_exact)
        fields = [name for name in states.columns if name not in {GROUP, EVENT, FAILED}]
        return states.select(
            f"{EVENT}.*",
            *((FAILED,) if FAILED in states.columns else ()),
            struct(*fields).alias(STATE),
            # Spark assigns keys to shuffle tasks by this hash.
            pmod(spark_hash(GROUP), lit(self.tasks)).alias(TASK),
        )

    def _outputs(self, events: DataFrame) -> DataFrame:
        """Return the outputs: their key and value, their origin, and, if an expression can fail, FAILURE and the record of the event."""
        emission, schema = self.emission, self.emission.output_schema
        name = f"Emission {emission.name}"
        fields: Mapping[str, Column] = field_columns(emission.fields_of(self.revision))
        require_fields(name, schema, fields)
        fields = with_privacy(
            name,
            schema,
            self.model.event_schemas,
            events,
            fields,
            self.pseudonym_key,
            own={STATE_NAME: {STATE}},
        )
        # The state is no field of the event.
        never_null = required_columns(self.model.event_schemas)
        required = frozenset(name for name in never_null if name.casefold() != STATE_NAME)
        failure = output_failure(
            emission.where,
            events,
            lambda applies: record_failures(name, schema, fields, applies, events, required),
        )
        if FAILED in events.columns:
            failure = coalesce(*(one for one in (concat(lit("state, "), FAILED), failure) if one is not None))
        key = output_key(harmless(fields[str(schema.key_field)], events))
        value = output_value(name, schema, self.schema_id, fields, events)
        condition: Column = lit(True)  # noqa: FBT003 - a column
        if emission.where is not None:
            condition = coalesce(harmless(column_of(emission.where), events), lit(False))  # noqa: FBT003 - a column
        columns = [
            col(PARTITION).alias("source_partition"),
            col(OFFSET).alias("source_offset"),
            lit(0).alias("source_index"),
            col(TASK),
            key.alias("output_key"),
        ]
        if failure is None:
            return events.where(condition).select(*columns, value.alias("output_value"))
        named = concat(lit(f"emission {emission.name}, fold {self.revision}: "), failure)
        checked = events.withColumn(FAILURE, named)
        failed = col(FAILURE).isNotNull()
        return checked.where(failed | condition).select(
            *columns, when(~failed, value).alias("output_value"), FAILURE, KEY, VALUE
        )
