"""The query of a route: events -> outputs with a new key, each with its origin in the headers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import (
    array,
    coalesce,
    col,
    concat,
    from_json,
    lit,
    posexplode,
    raise_error,
    struct,
)

from include.declarations.route import Route
from include.errors import ReadModelError
from include.kafka.dead_letters import SOURCE_OFFSET_HEADER, SOURCE_PARTITION_HEADER, SOURCE_TOPIC_HEADER
from include.kafka.origins import ROUTE_HEADER, SOURCE_INDEX_HEADER, Origin, Pair
from include.kafka.wire_format import header
from spark_jobs.folding.decode import EventDecoder, SchemaIds, good_events
from spark_jobs.folding.fold_query import avro_record
from spark_jobs.folding.key_partition import partition_of_key
from spark_jobs.routing.privacy import with_privacy

# The element of the array of `Route.each`.
ITEM = "item"
NOT_WRITTEN = Origin(-1, -1)


@dataclass(frozen=True)
class RouteQuery:
    """The computation of a route's query.

    partitions: of the source topic. output_partitions: of the output topic. schema_id: of the output's schema.
    pseudonym_key: the key of the hashes that replace personal values.
    written: the newest origin of each pair; what is at or below it is not written again.
    """

    route: Route
    partitions: int
    output_partitions: int
    schema_id: int
    pseudonym_key: bytes
    written: Mapping[Pair, Origin]

    def records(self, source: DataFrame, schema_ids: SchemaIds) -> DataFrame:
        """Return the records for the output topic. Raises ReadModelError if the route does not give the fields of its schema."""
        decoder = EventDecoder(self.route.event_schemas, schema_ids, self.partitions)
        condition = None if self.route.where is None else self.route.where()
        events = good_events(decoder.decode(source), condition)
        outputs = self._outputs(events).withColumn(
            "output_partition", partition_of_key(col("output_key"), self.output_partitions)
        )
        return outputs.where(self._is_new()).select(
            col("output_key").alias("key"),
            col("output_value").alias("value"),
            col("output_partition").alias("partition"),
            self._headers().alias("headers"),
        )

    def _outputs(self, events: DataFrame) -> DataFrame:
        """Return the columns source_partition, source_offset, source_index, output_key and output_value."""
        index: Column = lit(0)
        if self.route.each is not None:
            events = events.select("*", posexplode(self.route.each()).alias("source_index", ITEM))
            index = col("source_index")
        item = None if self.route.each is None else ITEM
        fields = with_privacy(self.route, events, item, self._fields(), self.pseudonym_key)
        schema = self.route.output_schema
        key = fields[str(schema.key_field)].cast("string").cast("binary")
        missing = raise_error(lit(f"Route {self.route.name} gives no key ({schema.key_field} is null)."))
        return events.select(
            col("partition").alias("source_partition"),
            col("offset").alias("source_offset"),
            index.alias("source_index"),
            coalesce(key, missing.cast("binary")).alias("output_key"),
            concat(lit(header(self.schema_id)), avro_record(schema, fields)).alias("output_value"),
        )

    def _fields(self) -> Mapping[str, Column]:
        fields = self.route.fields()
        schema = self.route.output_schema
        if sorted(fields) != sorted(schema.fields):
            raise ReadModelError(
                f"Route {self.route.name} gives {sorted(fields)}, but {schema.full_name} has {sorted(schema.fields)}."
            )
        return fields

    def _is_new(self) -> Column:
        """Return whether an output is not written yet."""
        newest = [
            self.written.get(Pair(p, q), NOT_WRITTEN)
            for p in range(self.partitions)
            for q in range(self.output_partitions)
        ]
        # One literal of any size: a condition for each pair would be compiled for each record.
        table = from_json(
            lit(json.dumps([{"offset": origin.offset, "index": origin.index} for origin in newest])),
            "array<struct<offset: bigint, index: int>>",
        )
        newest_origin = table[col("source_partition") * lit(self.output_partitions) + col("output_partition")]
        offset, index = newest_origin["offset"], newest_origin["index"]
        return (col("source_offset") > offset) | (
            (col("source_offset") == offset) & (col("source_index") > index)
        )

    def _headers(self) -> Column:
        texts = {
            ROUTE_HEADER: lit(self.route.name),
            SOURCE_TOPIC_HEADER: lit(self.route.source_topic),
            SOURCE_PARTITION_HEADER: col("source_partition").cast("string"),
            SOURCE_OFFSET_HEADER: col("source_offset").cast("string"),
            SOURCE_INDEX_HEADER: col("source_index").cast("string"),
        }
        return array(
            *(
                struct(lit(name).alias("key"), text.cast("binary").alias("value"))
                for name, text in texts.items()
            )
        )
