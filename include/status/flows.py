"""The active flows, by the declarations and the version registry: the task slots of each, and how its progress is found."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from include.declarations.catalog import Catalog
from include.declarations.kinds.emission import Emission
from include.declarations.kinds.periodic_emission import PeriodicEmission
from include.declarations.latency import Latency
from include.declarations.latency_override import reload_for_stream
from include.declarations.read_model import ReadModel
from include.kafka.origins import WrittenRecords
from include.kafka.topics import dead_letter_topic
from include.position import Offsets
from include.settings import Settings, StreamSettings
from include.status.flow_status import FlowKind, FlowStatus
from include.stream.checkpoints import emission_query_name, query_name
from include.stream.folded_offsets import ChangelogTail
from include.stream.slot_planning import flow_slots
from include.versions.version_record import ReadModelVersions, Stage, Version


@dataclass(frozen=True)
class ActiveFlow:
    """A flow that the driver runs: of a declaration, or of one active version of a read model.

    declared: its status without figures. queries: the names under which the driver may report it; empty if it needs no query.
    partitions: of its source. has_shuffle: whether its query has further tasks behind a shuffle.
    progress: what the last records of its output say about how far it has read its source; None: its lag is not measured.
    starts: of its source, the first event that it reads.
    """

    declared: FlowStatus
    queries: tuple[str, ...] = ()
    partitions: int = 0
    has_shuffle: bool = False
    progress: ChangelogTail | WrittenRecords | None = None
    starts: Offsets = field(default_factory=Offsets)

    @property
    def is_in_batches(self) -> bool:
        """Whether its query runs in batches, which have no task slots of their own."""
        declared = self.declared
        return bool(self.queries) and (
            declared.latency is Latency.SECOND or declared.emit_every_s is not None
        )

    def slots(self, stream: StreamSettings) -> int:
        """Return the task slots of its query."""
        if self.is_in_batches or not self.queries:
            return 0
        return flow_slots(stream, self.partitions, has_shuffle=self.has_shuffle)


def flows(
    settings: Settings, catalog: Catalog, records: Mapping[str, ReadModelVersions]
) -> Iterator[ActiveFlow]:
    """Yield every flow: of each active version, each declaration, each emission, and the dead letters of each source topic."""
    active = [
        (_with_folds(model, record, settings), version)
        for record in records.values()
        if (model := catalog.models.get(record.read_model)) is not None
        for version in record.active
    ]
    for model, version in active:
        yield _fold(settings, model, version)
    yield from _declared(settings, catalog)
    for model, version in active:
        yield from _emissions(settings, catalog, model, version)
    yield from _periodic(settings, catalog, records)
    sources = [model.reading(version.source_topic).source_topic for model, version in active]
    for topic in dict.fromkeys([*catalog.source_topics, *sources]):
        output_topic = dead_letter_topic(topic)
        kind = FlowKind.DEAD_LETTERS
        yield ActiveFlow(
            FlowStatus(output_topic, kind, topic, source_topic=topic, output_topic=output_topic),
            (output_topic,),
            catalog.partitions(topic, settings.topics),
        )


def _with_folds(model: ReadModel, record: ReadModelVersions, settings: Settings) -> ReadModel:
    """Return the read model, imported again if a revision was added after this process imported its module."""
    is_known = all(version.fold_revision in model.folds for version in record.active)
    return model if is_known else reload_for_stream(model.name, settings)


def _fold(settings: Settings, model: ReadModel, version: Version) -> ActiveFlow:
    name = query_name(model.name, version.number)
    status = FlowStatus(
        name,
        FlowKind.FOLD,
        model.name,
        model.name,
        version.number,
        version.stage.value,
        model.reading(version.source_topic).source_topic,
        version.changelog_topic,
        model.latency,
        None if model.emit_every is None else model.emit_every.total_seconds(),
    )
    progress = ChangelogTail(model.state_schema_of(version.fold_revision))
    partitions = model.partitions(settings.topics)
    return ActiveFlow(status, (name,), partitions, has_shuffle=True, progress=progress, starts=version.starts)


def _declared(settings: Settings, catalog: Catalog) -> Iterator[ActiveFlow]:
    for flow in catalog.flows:
        status = FlowStatus(
            flow.query_name,
            flow.kind,
            flow.versioned_name,
            flow.declared_name,
            stage=Stage.LIVE.value,
            source_topic=flow.source_topic,
            output_topic=flow.output_topic,
            latency=flow.latency,
        )
        yield ActiveFlow(
            status,
            (flow.query_name,),
            flow.partitions(settings.topics),
            flow.state is not None,
            WrittenRecords(flow.name, flow.source_topic),
        )


def _emissions(
    settings: Settings, catalog: Catalog, model: ReadModel, version: Version
) -> Iterator[ActiveFlow]:
    source = model.reading(version.source_topic).source_topic
    is_live = version.stage is Stage.LIVE
    for emission in catalog.outputs_of(Emission):
        if emission.read_model != model.name:
            continue
        name = emission_query_name(emission.name, version.number)
        status = FlowStatus(
            name,
            FlowKind.EMISSION,
            emission.name,
            model.name,
            version.number,
            version.stage.value,
            source,
            emission.output_topic if is_live else emission.version_topic(version.number),
        )
        # A version that has become live has its own query until it takes the consumers' topic over.
        queries = (f"{name}/live", name) if is_live else (name,)
        yield ActiveFlow(
            status,
            queries,
            model.partitions(settings.topics),
            has_shuffle=True,
            progress=WrittenRecords(emission.name, source),
            starts=version.starts,
        )


def _periodic(
    settings: Settings, catalog: Catalog, records: Mapping[str, ReadModelVersions]
) -> Iterator[ActiveFlow]:
    for emission in catalog.outputs_of(PeriodicEmission):
        record = records.get(emission.read_model)
        live = None if record is None else record.live
        status = FlowStatus(
            emission.name,
            FlowKind.PERIODIC,
            emission.name,
            emission.read_model,
            None if live is None else live.number,
            "" if live is None else live.stage.value,
            "" if live is None else live.changelog_topic,
            emission.output_topic,
            emit_every_s=emission.interval_ms(settings.stream) / 1000,
            has_query=False,
        )
        yield ActiveFlow(status)
