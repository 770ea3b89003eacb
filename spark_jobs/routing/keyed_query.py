"""The query of an emission or of a flow with a state: events -> at most one output for each, with the state of its key after it.

In real-time mode, a grouped aggregation gives a row for each event, in the order of its key: the aggregate after this event. Beside the
state, each group keeps its newest event as it is in the source, which the row therefore contains as well. In batches, the same query
would give one row for each key.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, concat, length, lit, max_by, pmod, sha2, struct, when
from pyspark.sql.functions import hash as spark_hash

from include.declarations.event_types.event_columns import KEY, OFFSET, PARTITION, VALUE
from include.declarations.rules.expression import Expression, Fields
from include.kafka.dead_letters import (
    FAILURE_HEADER,
    REASON_HEADER,
    VALUE_BYTES_HEADER,
    VALUE_SHA256_HEADER,
)
from include.kafka.origins import TASK_HEADER, LanePartition, OutputOrigin
from include.kafka.record_schema import RecordSchema
from include.kafka.schema_ids import SchemaIds
from include.kafka.topics import dead_letter_topic
from spark_jobs.folding.decode import FAILURE, EventDecoder, Reason, good_events
from spark_jobs.folding.event_rules import partition_of_key
from spark_jobs.folding.expressions.columns import column_of, field_columns, with_name
from spark_jobs.folding.expressions.failed_expressions import required_columns
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
# The struct of the state, in `fields` and `where` as STATE_NAME.
STATE = "record:state"
STATE_NAME = "state"
TASK = "record:shuffle_task"
# The columns of a record for the sink.
RECORD = ("key", "value", "partition", "headers", "topic")


@dataclass(frozen=True)
class KeyedRule:
    """The outputs that a declaration makes of events and of the states of their keys.

    name: in the header of each output. writer: names the declaration in messages. label: names it in dead letters.
    readers: the event types of the source topic that it reads. record_key: of a re-keyed source, see EventDecoder.
    failure: what of the state fails for a decoded event, which then does not count; None if nothing can.
    group: the key. state: builds the aggregates of a state and of its position.
    fields: those of an output, whose schema is `schema`; None: each event is written as it is.
    made_of: returns the columns of decoded events that the state, and fields of it, are made of (see with_privacy).
    """

    name: str
    writer: str
    label: str
    source_topic: str
    readers: tuple[RecordSchema, ...]
    failure: Callable[[DataFrame], Column | None]
    group: Expression
    state: Callable[[], Sequence[Column]]
    fields: Fields | None
    schema: RecordSchema | None
    where: Expression | None = None
    record_key: Expression | None = None
    made_of: Callable[[DataFrame], Mapping[str, set[str]]] = lambda _events: {STATE_NAME: {STATE}}


@dataclass(frozen=True)
class KeyedQuery:
    """The computation of a query with a state for each key.

    partitions: of the source topic. output_partitions: of the output topic. tasks: number of shuffle tasks.
    schema_id: of the output's schema. pseudonym_key: the key of the hashes that replace personal values.
    written: the newest origin of each pair; what is at or below it is not written again. topic: the output topic.
    is_exact: whether the state has the parts of exact sums (see aggregated_states).
    """

    rule: KeyedRule
    partitions: int
    output_partitions: int
    tasks: int
    schema_id: int
    pseudonym_key: bytes
    written: Mapping[LanePartition, OutputOrigin]
    topic: str = ""
    is_exact: bool = True

    def records(self, source: DataFrame, schema_ids: SchemaIds) -> DataFrame:
        """Return the records for the output topic, and the dead letters of events for which an expression of the output fails.

        The column `topic` tells them apart. Raises ReadModelError if the declaration does not give the fields of its schema.
        """
        rule = self.rule
        decoder = EventDecoder(rule.readers, schema_ids, self.partitions, rule.record_key)
        decoded = decoder.decode(source)
        folded = good_events(decoded, failure=rule.failure(decoded))
        states = self._states(folded, decoder.record_columns)
        # The state hides an event's field of this name: a field that is added to the schema does not change what is read.
        of_state = (FAILED,) if FAILED in states.columns else ()
        events = with_name(decoder.decode(states, also=(STATE, TASK, *of_state)), STATE_NAME, STATE)
        outputs = self._outputs(events, rule.made_of(decoded)).withColumn(
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
            origin_headers(self.rule.name, self.rule.source_topic, task).alias("headers"),
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
            origin_headers(self.rule.name, self.rule.source_topic, others),
            lit(dead_letter_topic(self.rule.source_topic)),
        ]

    def _states(self, events: DataFrame, record: Mapping[str, str]) -> DataFrame:
        """Return each key's newest event, as these columns of the record in the source, with the columns STATE and TASK, and FAILED if a state can fail."""
        event = struct(*(col(column).alias(name) for column, name in record.items()))
        newest = max_by(event, col(OFFSET)).alias(EVENT)
        groups = events.groupBy(column_of(self.rule.group).cast("string").alias(GROUP))
        states = aggregated_states(groups, self.rule.state(), [newest], check=None, is_exact=self.is_exact)
        fields = [name for name in states.columns if name not in {GROUP, EVENT, FAILED}]
        return states.select(
            f"{EVENT}.*",
            *((FAILED,) if FAILED in states.columns else ()),
            struct(*fields).alias(STATE),
            # Spark assigns keys to shuffle tasks by this hash.
            pmod(spark_hash(GROUP), lit(self.tasks)).alias(TASK),
        )

    def _outputs(self, events: DataFrame, own: Mapping[str, set[str]]) -> DataFrame:
        """Return the outputs: their key and value, their origin, and, if an expression can fail, FAILURE and the record of the event."""
        rule = self.rule
        key, value, of_record = self._written(events, own)
        failure = output_failure(rule.where, events, of_record)
        if FAILED in events.columns:
            failure = coalesce(*(one for one in (concat(lit("state, "), FAILED), failure) if one is not None))
        condition: Column = lit(True)  # noqa: FBT003 - a column
        if rule.where is not None:
            condition = coalesce(harmless(column_of(rule.where), events), lit(False))  # noqa: FBT003 - a column
        columns = [
            col(PARTITION).alias("source_partition"),
            col(OFFSET).alias("source_offset"),
            lit(0).alias("source_index"),
            col(TASK),
            key.alias("output_key"),
        ]
        if failure is None:
            return events.where(condition).select(*columns, value.alias("output_value"))
        checked = events.withColumn(FAILURE, concat(lit(f"{rule.label}: "), failure))
        failed = col(FAILURE).isNotNull()
        return checked.where(failed | condition).select(
            *columns, when(~failed, value).alias("output_value"), FAILURE, KEY, VALUE
        )

    def _written(
        self, events: DataFrame, own: Mapping[str, set[str]]
    ) -> tuple[Column, Column, Callable[[Column], Sequence[Column]]]:
        """Return an output's key and value, and what of its fields fails for the events that satisfy a condition."""
        rule, schema = self.rule, self.rule.schema
        if rule.fields is None or schema is None:
            return col(KEY), col(VALUE), lambda _applies: ()
        fields = field_columns(rule.fields)
        require_fields(rule.writer, schema, fields)
        shown = with_privacy(rule.writer, schema, rule.readers, events, fields, self.pseudonym_key, own=own)
        # The state is no field of the event.
        never_null = required_columns(rule.readers)
        required = frozenset(name for name in never_null if name.casefold() != STATE_NAME)
        return (
            output_key(harmless(shown[str(schema.key_field)], events)),
            output_value(rule.writer, schema, self.schema_id, shown, events),
            lambda applies: record_failures(rule.writer, schema, shown, applies, events, required),
        )
