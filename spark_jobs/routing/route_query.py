"""The query of a route: events -> outputs with a new key, each with its origin in the headers."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, lit, posexplode

from include.declarations.route import Route
from include.kafka.origins import Origin, Pair
from spark_jobs.folding.decode import SchemaIds, good_events
from spark_jobs.folding.decoders import event_decoder
from spark_jobs.folding.key_partition import partition_of_key
from spark_jobs.routing.origin_columns import is_new, origin_headers
from spark_jobs.routing.output_record import output_key, output_value, require_fields
from spark_jobs.routing.privacy import Item, with_privacy

# The element of the array of `Route.each`.
ITEM = "item"


@dataclass(frozen=True)
class RouteQuery:
    """The computation of a route's query.

    partitions: of the source topic. output_partitions: of the output topic. schema_id: of the output's schema, if it has one of its own.
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
        route = self.route
        decoder = event_decoder(route.events, schema_ids, self.partitions)
        condition = None if route.where is None else route.where()
        events = good_events(decoder.decode(source), condition)
        outputs = self._unchanged(events) if route.fields is None else self._outputs(events, route.fields())
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

    def _unchanged(self, events: DataFrame) -> DataFrame:
        """Return the columns source_partition, source_offset, source_index, output_key and output_value: each event as it is."""
        route = self.route
        key = (
            col("key")
            if route.key is None
            else output_key(f"Route {route.name}", route.key(), f"{route.key()}")
        )
        return events.select(
            col("partition").alias("source_partition"),
            col("offset").alias("source_offset"),
            lit(0).alias("source_index"),
            key.alias("output_key"),
            col("value").alias("output_value"),
        )

    def _outputs(self, events: DataFrame, fields: Mapping[str, Column]) -> DataFrame:
        """Return the columns source_partition, source_offset, source_index, output_key and output_value."""
        route, schema = self.route, self.route.output_schema
        require_fields(f"Route {route.name}", schema, fields)
        index: Column = lit(0)
        item = None
        if route.each is not None:
            item = Item(ITEM, route.each())
            events = events.select("*", posexplode(item.array).alias("source_index", ITEM))
            index = col("source_index")
        fields = with_privacy(
            f"Route {route.name}", schema, route.event_schemas, events, fields, self.pseudonym_key, item
        )
        key = output_key(f"Route {route.name}", fields[str(schema.key_field)], str(schema.key_field))
        return events.select(
            col("partition").alias("source_partition"),
            col("offset").alias("source_offset"),
            index.alias("source_index"),
            key.alias("output_key"),
            output_value(f"Route {route.name}", schema, self.schema_id, fields, events).alias("output_value"),
        )
