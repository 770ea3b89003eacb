"""Emissions: one query per emission and active version of its read model, exactly once for every reader.

The live version emits to the consumers' topic, any other version to a topic of its own. When a version becomes live, its query stops
and starts again as another one, with the same checkpoint: the new one first appends to the consumers' topic what the version has emitted
beyond the newest origins there. If the version that was live before folds another version of the source topic, the new one goes on with
its own topic until it has emitted there what consumers have received.
"""

from dataclasses import replace

from include.declarations.kinds.emission import Emission
from include.declarations.read_model import ReadModel
from include.stream.checkpoints import emission_query_name
from include.stream.slot_planning import query_slots, shuffle_partitions
from include.versions.version_record import Stage, Version
from spark_jobs.streaming.outputs.emission_run import EmissionRun
from spark_jobs.streaming.outputs.sink_delivery import DELIVERED_AFTER_S, SINK
from spark_jobs.streaming.outputs.takeover_check import TakeoverCheck
from spark_jobs.streaming.query_spec import QuerySpec
from spark_jobs.streaming.specs.folds import SLOT_RANKS
from spark_jobs.streaming.stream_context import StreamContext


def query_specs(context: StreamContext) -> list[QuerySpec]:
    """Return the query of every emission for each active version of its read model; raises KafkaUnavailableError."""
    emissions = context.catalog.outputs_of(Emission)
    records = context.versions.read() if emissions else {}
    return [
        emission_spec(context, emission, context.models[emission.read_model], version)
        for emission in emissions
        if emission.read_model in records
        for version in records[emission.read_model].active
    ]


def emission_spec(
    context: StreamContext, emission: Emission, model: ReadModel, version: Version
) -> QuerySpec:
    """Return the query of an emission for one version; the others continue when it fails."""
    model = model.reading(version.source_topic, version.starts)
    topics = context.settings.topics
    coverage = None
    if version.stage is Stage.LIVE:
        coverage = TakeoverCheck(context, emission, version, model.source_topic)
        if not coverage.is_complete():
            coverage = None
    is_live = coverage is not None
    name = emission_query_name(emission.name, version.number)
    sink = emission.output_topic if is_live else emission.version_topic(version.number)
    endpoints = replace(
        context.endpoints(model.source_topic, sink, name), sink_partitions=emission.output_partitions(topics)
    )
    partitions = model.partitions(topics)
    run = EmissionRun(
        context,
        emission,
        model,
        version,
        endpoints,
        shuffle_partitions(context.settings.stream, partitions),
        coverage,
    )
    return QuerySpec(
        name=f"{name}/live" if is_live else name,
        endpoints=endpoints,
        schemas=context.schemas(model.source_topic),
        records=run.records,
        triggers=replace(context.triggers, real_time_only=True),
        starts=model.starts,
        is_essential=False,
        prepare=run.prepare,
        guard=run.guard,
        sink=SINK,
        settles_in_s=DELIVERED_AFTER_S,
        note=run.note,
        task_slots=query_slots(context.settings.stream, partitions),
        slot_rank=(SLOT_RANKS[version.stage], -version.replaced_in),
    )
