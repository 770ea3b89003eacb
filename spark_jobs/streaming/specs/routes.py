"""Routes: one query per declared route, from its source topic to its output topic, exactly once for every reader."""

import json
import logging
from dataclasses import replace

from pyspark.sql import DataFrame

from include.declarations.latency import Latency
from include.declarations.route import Route
from include.errors import ReadModelError, SchemaError
from include.kafka.origins import WrittenRecords
from include.position import Offsets
from include.stream.checkpoints import key_rule_path, written_note_path
from include.stream.pseudonym_key import pseudonym_key
from include.stream.slot_planning import SlotRank
from spark_jobs.folding.decode import SchemaIds
from spark_jobs.folding.expressions.rules import expression_text
from spark_jobs.folding.key_columns import require_entity_key
from spark_jobs.routing.route_query import RouteQuery
from spark_jobs.routing.written_outputs import WrittenOutputs
from spark_jobs.runtime.checkpoint import committed_offsets, read_text, write_text
from spark_jobs.streaming.outputs.sink_delivery import DELIVERED_AFTER_S, SINK
from spark_jobs.streaming.query_spec import QueryEndpoints, QuerySpec, StartRefusedError
from spark_jobs.streaming.stream_context import StreamContext

LOG = logging.getLogger(__name__)


def query_specs(context: StreamContext) -> list[QuerySpec]:
    """Return one query per route."""
    return [route_spec(context, route) for route in context.catalog.routes.values()]


def route_spec(context: StreamContext, route: Route) -> QuerySpec:
    """Return the query of a route; the others continue when it fails."""
    output_partitions = route.output_partitions(context.settings.topics)
    endpoints = replace(
        context.endpoints(route.source_topic, route.output_topic, route.query_name),
        sink_partitions=output_partitions,
    )
    run = RouteRun(context, route, endpoints)
    return QuerySpec(
        name=route.query_name,
        endpoints=endpoints,
        schemas=context.schemas(route.source_topic),
        records=run.records,
        triggers=replace(context.triggers, batches_only=route.latency is Latency.SECOND),
        is_essential=False,
        prepare=run.prepare,
        sink=SINK,
        settles_in_s=DELIVERED_AFTER_S,
        note=run.written.note,
        slot_rank=(SlotRank.SERVING, 0),
    )


class RouteRun:
    """The computation of a route's query, and what it has written."""

    def __init__(self, context: StreamContext, route: Route, endpoints: QueryEndpoints) -> None:
        self._context = context
        self._route = route
        self._endpoints = endpoints
        self._output_partitions = endpoints.sink_partitions
        self._schema_id = 0
        self.written = WrittenOutputs(
            lambda: context.spark,
            context.consumer,
            written_note_path(endpoints.checkpoint),
            route.output_topic,
            self._output_partitions,
            WrittenRecords(route.name, route.source_topic),
            self._committed,
        )

    def prepare(self) -> None:
        """Register the schemas of events and outputs; raises StartRefusedError if the registry rejects one, or a read model's key has changed."""
        self._require_same_key()
        try:
            self._context.register_event_types(self._route)
            for schema in self._route.written_schemas:
                self._schema_id = self._context.schema_registry.register(self._route.output_topic, schema)
        except SchemaError as error:
            raise StartRefusedError(str(error)) from error

    def _require_same_key(self) -> None:
        """Store the rule of a derived route before its first start; afterwards, refuse another one.

        The read model's states rest on what is in the re-keyed topic: events under another key, or of a type whose earlier events are
        missing there, could not be taken back.
        """
        route = self._route
        if not route.of_read_model or route.key is None:
            return
        location = key_rule_path(self._endpoints.checkpoint)
        stored = read_text(self._context.spark, location)
        current = json.dumps({"key": expression_text(route.key), "event_types": sorted(route.event_types)})
        if stored is None:
            try:
                require_entity_key(self._context.spark, self._context.models[route.of_read_model])
            except ReadModelError as error:
                raise StartRefusedError(str(error)) from error
            write_text(self._context.spark, location, current)
        elif stored != current:
            raise StartRefusedError(
                f"the events of read model {route.of_read_model} are re-keyed by {stored}, which is now {current}: undo the edit, and "
                "declare a read model under another name for the other key or event types"
            )

    def records(self, source: DataFrame, schema_ids: SchemaIds) -> DataFrame:
        """Return the outputs that are not written yet."""
        written = self.written.read()
        newest = {
            p: max(origin.offset for pair, origin in written.items() if pair.source == p) for p, _ in written
        }
        LOG.info("route %s has written up to source offsets %s", self._route.versioned_name, newest)
        query = RouteQuery(
            self._route,
            self._endpoints.partitions,
            self._output_partitions,
            self._schema_id,
            pseudonym_key(self._context.settings),
            written,
        )
        return query.records(source, schema_ids)

    def _committed(self) -> Offsets:
        return committed_offsets(
            self._context.spark, self._endpoints.checkpoint, self._endpoints.source_topic
        )
