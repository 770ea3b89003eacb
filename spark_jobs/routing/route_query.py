"""The query of a route, or of another flow without a state: events -> outputs with a new key, each with its origin in the headers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, lit, posexplode, when

from include.declarations.event_types.event_columns import KEY, OFFSET, PARTITION, VALUE
from include.declarations.kinds.flow import Flow
from include.kafka.avro.avro_types import avro_type
from include.kafka.origins import LanePartition, OutputOrigin
from include.kafka.schema_ids import SchemaIds
from spark_jobs.folding.decode import good_events
from spark_jobs.folding.event_rules import partition_of_key
from spark_jobs.folding.expressions.analysed import expressions_of
from spark_jobs.folding.expressions.columns import column_of, field_columns
from spark_jobs.folding.expressions.failed_expressions import (
    can_raise,
    is_event,
    named,
    of_any_item,
    raises,
    required_columns,
)
from spark_jobs.folding.expressions.failed_fields import field_failures
from spark_jobs.folding.json_decode import event_decoder
from spark_jobs.routing.origin_columns import is_new, origin_headers
from spark_jobs.routing.output_record import (
    harmless,
    output_failure,
    output_key,
    output_value,
    record_failures,
    require_fields,
)
from spark_jobs.routing.privacy import columns_of, with_privacy

# The element of the array of `Route.each`, in `Route.fields`, and its number.
ITEM = "item"
INDEX = "record:item_index"


@dataclass(frozen=True)
class RouteQuery:
    """The computation of a route's query.

    partitions: of the source topic. output_partitions: of the output topic. schema_id: of the output's schema, if it has one of its own.
    pseudonym_key: the key of the hashes that replace personal values.
    written: the newest origin of each pair; what is at or below it is not written again.
    """

    route: Flow
    partitions: int
    output_partitions: int
    schema_id: int
    pseudonym_key: bytes
    written: Mapping[LanePartition, OutputOrigin]

    def records(self, source: DataFrame, schema_ids: SchemaIds) -> DataFrame:
        """Return the records for the output topic. Raises ReadModelError if the route does not give the fields of its schema."""
        route = self.route
        events = event_decoder(route.events, schema_ids, self.partitions).decode(source)
        condition = None if route.where is None else column_of(route.where)
        routed = good_events(events, condition, self.failure(events))
        outputs = self._unchanged(routed) if route.fields is None else self._outputs(routed)
        outputs = outputs.withColumn(
            "output_partition", partition_of_key(col("output_key"), self.output_partitions)
        )
        new = is_new(self.written, self.partitions, self.output_partitions, col("source_partition"))
        return outputs.where(new).select(
            col("output_key").alias("key"),
            col("output_value").alias("value"),
            col("output_partition").alias("partition"),
            origin_headers(route.name, route.source_topic).alias("headers"),
        )

    def failure(self, events: DataFrame) -> Column | None:
        """Return what of the route fails for a decoded event, which then has no output: `where`, `each`, or a field; null if nothing does.

        None if nothing can. Raises ReadModelError if the route does not give the fields of its schema.
        """
        return output_failure(self.route.where, events, partial(self._failures, events))

    def _failures(self, events: DataFrame, applies: Column) -> Sequence[Column]:
        route, required = self.route, required_columns(self.route.event_schemas)
        if route.fields is None:
            key = {} if route.key is None else {"key": column_of(route.key).cast("string").alias("key")}
            return field_failures(applies, key, {"key": avro_type("string")}, events, required)
        rows, fields = self._fields(events)
        if route.each is None:
            return record_failures(self._writer, route.output_schema, fields, applies, rows, required)
        failures = []
        (array,) = expressions_of(events.select(column_of(route.each).alias("each")))
        if can_raise(array):
            failures.append(named("each", raises(applies, column_of(route.each))))
        # The element is no field of the event.
        required = frozenset(name for name in required if name.casefold() != ITEM)
        of_item = record_failures(self._writer, route.output_schema, fields, is_event(), rows, required)
        if of_item:
            found = of_any_item(
                harmless(column_of(route.each), events), rows, ITEM, coalesce(*of_item), events
            )
            failures.append(when(applies, found))
        return failures

    @property
    def _writer(self) -> str:
        return self.route.title

    def _fields(self, events: DataFrame) -> tuple[DataFrame, Mapping[str, Column]]:
        """Return one row for each output, and the columns of its fields."""
        route, schema = self.route, self.route.output_schema
        assert route.fields is not None  # noqa: S101 - the caller has checked it
        fields = field_columns(route.fields)
        require_fields(self._writer, schema, fields)
        own: dict[str, set[str]] = {}
        if route.each is not None:
            own = columns_of(events, {ITEM: column_of(route.each)})
            # The element hides an event's field of this name, as the state does in an emission.
            others = (name for name in events.columns if name.casefold() != ITEM)
            events = events.select(
                *others, posexplode(harmless(column_of(route.each), events)).alias(INDEX, ITEM)
            )
        return events, with_privacy(
            self._writer, schema, route.event_schemas, events, fields, self.pseudonym_key, own
        )

    def _unchanged(self, events: DataFrame) -> DataFrame:
        """Return the columns source_partition, source_offset, source_index, output_key and output_value: each event as it is."""
        route = self.route
        key = col(KEY) if route.key is None else output_key(harmless(column_of(route.key), events))
        return events.select(
            col(PARTITION).alias("source_partition"),
            col(OFFSET).alias("source_offset"),
            lit(0).alias("source_index"),
            key.alias("output_key"),
            col(VALUE).alias("output_value"),
        )

    def _outputs(self, events: DataFrame) -> DataFrame:
        """Return the columns source_partition, source_offset, source_index, output_key and output_value."""
        schema = self.route.output_schema
        rows, fields = self._fields(events)
        index = lit(0) if self.route.each is None else col(INDEX)
        return rows.select(
            col(PARTITION).alias("source_partition"),
            col(OFFSET).alias("source_offset"),
            index.alias("source_index"),
            output_key(harmless(fields[str(schema.key_field)], rows)).alias("output_key"),
            output_value(self._writer, schema, self.schema_id, fields, rows).alias("output_value"),
        )
