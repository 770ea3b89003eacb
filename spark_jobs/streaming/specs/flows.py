"""Flows: one query for each flow to which a declaration compiles, from its source topic to its output topic, exactly once for every reader."""

from dataclasses import replace
from functools import partial

from include.declarations.kinds.flow import Flow
from include.stream.slot_planning import SlotRank, flow_slots
from include.versions.version_lock import query_lock
from spark_jobs.streaming.outputs.flow_run import FlowRun
from spark_jobs.streaming.outputs.sink_delivery import DELIVERED_AFTER_S, SINK
from spark_jobs.streaming.query_spec import QuerySpec
from spark_jobs.streaming.stream_context import StreamContext

# The driver before has ended, and its locks are free.
LOCK_WAIT_S = 2.0


def query_specs(context: StreamContext) -> list[QuerySpec]:
    """Return one query per flow."""
    return [flow_spec(context, flow) for flow in context.catalog.flows]


def flow_spec(context: StreamContext, flow: Flow) -> QuerySpec:
    """Return the query of a flow; the others continue when it fails."""
    endpoints = replace(
        context.endpoints(flow.source_topic, flow.output_topic, flow.query_name),
        sink_partitions=flow.output_partitions(context.settings.topics),
    )
    run = FlowRun(context, flow, endpoints)
    has_state = flow.state is not None
    return QuerySpec(
        name=flow.query_name,
        endpoints=endpoints,
        schemas=context.schemas(flow.source_topic),
        records=run.records,
        # A flow with a state writes an output for each event, which batches cannot.
        triggers=replace(context.triggers, batches_only=flow.is_in_batches, real_time_only=has_state),
        is_essential=False,
        prepare=run.prepare,
        guard=partial(query_lock, context.settings.home, flow.query_name, wait_s=LOCK_WAIT_S),
        sink=SINK,
        settles_in_s=DELIVERED_AFTER_S,
        note=run.note,
        feeds_others=bool(context.catalog.readers_of(flow.output_topic)),
        task_slots=flow_slots(context.settings.stream, endpoints.partitions, has_shuffle=has_state),
        slot_rank=(SlotRank.SERVING, 0),
    )
