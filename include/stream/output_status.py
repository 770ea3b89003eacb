"""The progress of routes, emissions and periodic emissions, measured on their topics and from the driver's reports."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from include.declarations.catalog import Catalog
from include.declarations.route import Route
from include.kafka.ends.record_ends import RecordEnds
from include.kafka.log_reading import end_offsets, read_tail
from include.kafka.origins import WrittenRecords
from include.kafka.topics import partition_count
from include.kafka.written_ticks import newest_tick
from include.position import Offsets
from include.settings import StreamSettings
from include.stream.checkpoints import emission_query_name
from include.stream.query_reports import QueryStatus
from include.stream.standstill import read_offsets
from include.versions.version_record import ReadModelVersions, Stage

# Enough to include a record of every source partition in most cases.
TAIL_RECORDS = 300


@dataclass(frozen=True)
class RouteStatus:
    """The progress of one route.

    route: its name, with the version if it is a later one.
    latency: as declared, or as FOLDLAKE_STREAM_IN_BATCHES overrides it.
    events: source events, read or not.
    events_behind: those that it has not read, as far as can be seen: an event without an output counts until the next commit.
    records: number of records on the output topic, of all routes that write to it.
    """

    route: str
    source_topic: str
    output_topic: str
    latency: str
    events: int
    events_behind: int
    records: int


def route_statuses(
    routes: Mapping[str, Route], admin: AdminClient, consumer: Consumer, reports: Mapping[str, QueryStatus]
) -> Iterator[RouteStatus]:
    """Yield the progress of each route whose topics exist; raises KafkaUnavailableError."""
    record_ends = RecordEnds(consumer)
    for route in routes.values():
        source_partitions = partition_count(admin, route.source_topic)
        output_partitions = partition_count(admin, route.output_topic)
        if source_partitions is None or output_partitions is None:
            continue
        ends = Offsets.of_ends(end_offsets(consumer, route.source_topic, source_partitions))
        read = routed_offsets(route, admin, consumer, reports.get(route.query_name))
        unread = record_ends.unread(route.source_topic, ends, read)
        yield RouteStatus(
            route.versioned_name,
            route.source_topic,
            route.output_topic,
            route.latency.value,
            Offsets().events_until(ends),
            read.events_until(unread),
            sum(end_offsets(consumer, route.output_topic, output_partitions)),
        )


def routed_offsets(
    route: Route, admin: AdminClient, consumer: Consumer, report: QueryStatus | None
) -> Offsets:
    """Return how far a route has read its source, by its query's last commit, dead letters and outputs; raises KafkaUnavailableError."""
    read = read_offsets(admin, consumer, route.source_topic, report)
    partitions = partition_count(admin, route.output_topic) or 0
    records = WrittenRecords(route.name, route.source_topic)
    return read.merge(_newest_outputs(consumer, route.output_topic, partitions, records))


def _newest_outputs(consumer: Consumer, topic: str, partitions: int, records: WrittenRecords) -> Offsets:
    """Return the source offsets after the newest outputs of a route or an emission; raises KafkaUnavailableError."""
    newest: dict[int, int] = {}
    for partition in range(partitions):
        for message in read_tail(consumer, topic, partition, TAIL_RECORDS):
            found = records.source(message)
            if found is not None:
                source, origin = found
                newest[source] = max(origin.offset, newest.get(source, 0))
    return Offsets.of_newest(newest)


@dataclass(frozen=True)
class EmissionStatus:
    """The progress of one emission for one version of its read model.

    events: source events of the version, read or not.
    events_behind: those that it has not read, as far as can be seen: an event without an output counts until the next commit.
    records: number of records on the output topic.
    """

    emission: str
    read_model: str
    version: int
    output_topic: str
    events: int
    events_behind: int
    records: int


def emission_statuses(
    catalog: Catalog,
    versions: Mapping[str, ReadModelVersions],
    admin: AdminClient,
    consumer: Consumer,
    reports: Mapping[str, QueryStatus],
) -> Iterator[EmissionStatus]:
    """Yield the progress of each emission of each active version whose topics exist; raises KafkaUnavailableError."""
    record_ends = RecordEnds(consumer)
    for emission in catalog.emissions.values():
        record = versions.get(emission.read_model)
        model = catalog.models[emission.read_model]
        for version in () if record is None else record.active:
            source = model.reading(version.source_topic).source_topic
            source_partitions = partition_count(admin, source)
            is_live = version.stage is Stage.LIVE
            topic = emission.output_topic if is_live else emission.version_topic(version.number)
            partitions = partition_count(admin, topic)
            if source_partitions is None or partitions is None:
                continue
            name = emission_query_name(emission.name, version.number)
            # A version that has become live has its own query until it takes the consumers' topic over.
            queries = [
                reports[query]
                for query in ((f"{name}/live", name) if is_live else (name,))
                if query in reports
            ]
            newest = min(queries, key=attrgetter("reported_age_s"), default=None)
            read = read_offsets(admin, consumer, source, newest)
            records = WrittenRecords(emission.name, source)
            read = read.merge(_newest_outputs(consumer, topic, partitions, records))
            ends = Offsets.of_ends(end_offsets(consumer, source, source_partitions))
            unread = record_ends.unread(source, ends, read)
            yield EmissionStatus(
                emission.name,
                emission.read_model,
                version.number,
                topic,
                version.starts.events_until(ends),
                read.events_until(unread),
                sum(end_offsets(consumer, topic, partitions)),
            )


@dataclass(frozen=True)
class PeriodicStatus:
    """The progress of one periodic emission.

    newest_tick_age_s: time since its newest tick, which its interval bounds while the driver runs; None before the first.
    """

    emission: str
    read_model: str
    output_topic: str
    interval_s: float
    newest_tick_age_s: float | None


def periodic_statuses(
    catalog: Catalog, stream: StreamSettings, admin: AdminClient, consumer: Consumer
) -> Iterator[PeriodicStatus]:
    """Yield the progress of each periodic emission; raises KafkaUnavailableError."""
    for emission in catalog.periodic.values():
        partitions = partition_count(admin, emission.output_topic) or 0
        tick_ms = newest_tick(consumer, emission.output_topic, partitions)
        yield PeriodicStatus(
            emission.name,
            emission.read_model,
            emission.output_topic,
            emission.interval_ms(stream) / 1000,
            None if tick_ms is None else time.time() - tick_ms / 1000,
        )
