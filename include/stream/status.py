"""The stream's status: lag in events, age of the newest event, dead letters, and the phase of each query.

Reads from Kafka alone, without contacting the driver: the lag is the end of the source's records less the newest source offset in a
changelog's last records.
"""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from include.declarations.latency_override import reload_for_stream, stream_catalog
from include.declarations.read_model import ReadModel
from include.kafka.ends.open_transactions import OpenTransaction, open_transactions
from include.kafka.ends.record_ends import RecordEnds
from include.kafka.log_reading import end_offsets, log_consumer
from include.kafka.topics import admin_client, dead_letter_topic, partition_count
from include.position import Offsets
from include.settings import Settings
from include.stream.checkpoints import query_name
from include.stream.folded_offsets import ChangelogTail, EventTimeAhead
from include.stream.output_status import (
    EmissionStatus,
    PeriodicStatus,
    RouteStatus,
    emission_statuses,
    periodic_statuses,
    route_statuses,
)
from include.stream.phase import Phase
from include.stream.query_reports import QueryStatus, newest_reports
from include.stream.standstill import read_offsets, stands_still
from include.versions.registry import VersionRegistry
from include.versions.version_record import ReadModelVersions, Stage

# Enough to include the newest record of every source partition: the records of one batch are written interleaved.
TAIL_RECORDS = 300
# After a burst the tasks of a real-time query end one after the other, and the newest record of a source partition may be
# further back. The longer tail is read if events seem to be missing and no record was written lately.
LONG_TAIL_RECORDS = 20_000


@dataclass(frozen=True)
class VersionStatus:
    """The progress of one active version, measured on its topics.

    events_behind: its lag: source events that are not in its changelog yet.
    newest_event_age_s: age of the newest record of its source topic by the record's time in Kafka; None before the first.
    newest_folded_age_s: age of the newest state record by its write time; None before the first.
    latency: of its folds, as declared or as FOLDLAKE_STREAM_IN_BATCHES overrides it. emit_every_s: its interval, likewise; None if it has none.
    still_s: for how long events have waited and none was folded; None while the folds keep up, and for a version that is not live.
    event_time_ahead: a record among the last of the changelog with an event time in the future; None if there is none.
    """

    read_model: str
    version: int
    stage: str
    source_topic: str
    events: int
    events_behind: int
    newest_event_age_s: float | None
    newest_folded_age_s: float | None
    dead_letters: int
    latency: str
    still_s: float | None = None
    emit_every_s: float | None = None
    event_time_ahead: EventTimeAhead | None = None


@dataclass(frozen=True)
class StuckDeadLetters:
    """A source topic whose dead letters are not being written, and for how long."""

    source_topic: str
    stuck_for_s: float


@dataclass(frozen=True)
class BuildingVersion:
    """A version that a rebuild builds; the stream driver does not fold it yet. created_at: ISO time."""

    read_model: str
    version: int
    fold_revision: int
    created_at: str
    reason: str


@dataclass(frozen=True)
class StreamStatus:
    """The status of the whole stream.

    state: running, catching up, failing, standing still or not running.
    events_behind: the largest lag of any version, route or emission. dead_letters: number in all source topics;
        dead_letters_of: in each.
    newest_event_age_s: age of the newest event of any version's source topic.
    stuck_dead_letters: the source topics whose dead letters are not being written; the folds continue.
    open_transactions: the source topics whose newest events wait until a producer ends its transaction.
    routes, emissions, periodic: the progress of each. building: the versions that rebuilds build.
    """

    state: str
    driver_pid: int | None
    events_behind: int
    newest_event_age_s: float | None
    dead_letters: int
    versions: tuple[VersionStatus, ...]
    queries: tuple[QueryStatus, ...]
    stuck_dead_letters: tuple[StuckDeadLetters, ...] = ()
    routes: tuple[RouteStatus, ...] = ()
    emissions: tuple[EmissionStatus, ...] = ()
    periodic: tuple[PeriodicStatus, ...] = ()
    building: tuple[BuildingVersion, ...] = ()
    open_transactions: tuple[OpenTransaction, ...] = ()
    dead_letters_of: Mapping[str, int] = field(default_factory=dict)


def read_stream_status(settings: Settings) -> StreamStatus:
    """Measure the stream's progress; takes about a second.

    Raises KafkaUnavailableError when no broker responds.
    """
    consumer = log_consumer(settings.kafka.bootstrap_servers)
    admin = admin_client(settings.kafka.bootstrap_servers)
    try:
        queries = tuple(newest_reports(admin, consumer))
        catalog = stream_catalog(settings)
        with VersionRegistry(settings.kafka.bootstrap_servers) as registry:
            records = registry.read()
        by_name = {query.query: query for query in queries}
        versions = tuple(_versions(settings, catalog.models, records, admin, consumer, by_name))
        routes = tuple(route_statuses(catalog.routes, admin, consumer, by_name))
        emissions = tuple(emission_statuses(catalog, records, admin, consumer, by_name))
        periodic = tuple(periodic_statuses(catalog, settings.stream, admin, consumer))
        letters = {version.source_topic: version.dead_letters for version in versions}
        for topic in {route.source_topic for route in routes} - letters.keys():
            letters[topic] = _dead_letters(admin, consumer, topic)
        held = tuple(open_transactions(settings.kafka.bootstrap_servers, admin, letters.keys()))
    finally:
        consumer.close()
    fresh = [query for query in queries if query.is_fresh and query.phase != Phase.STOPPED]
    lags = [version.events_behind for version in versions]
    lags += [route.events_behind for route in routes] + [emission.events_behind for emission in emissions]
    return StreamStatus(
        state=_state({query.phase for query in fresh}, versions),
        driver_pid=fresh[0].driver_pid if fresh else None,
        events_behind=max(lags, default=0),
        newest_event_age_s=min(
            (v.newest_event_age_s for v in versions if v.newest_event_age_s is not None), default=None
        ),
        dead_letters=sum(letters.values()),
        versions=versions,
        queries=tuple(fresh),
        stuck_dead_letters=tuple(_stuck_dead_letters(letters.keys(), fresh)),
        routes=routes,
        emissions=emissions,
        periodic=periodic,
        building=tuple(_building(records)),
        open_transactions=held,
        dead_letters_of=letters,
    )


def _building(records: Mapping[str, ReadModelVersions]) -> Iterable[BuildingVersion]:
    for record in records.values():
        for version in record.versions:
            if version.stage is Stage.BUILDING:
                yield BuildingVersion(
                    record.read_model,
                    version.number,
                    version.fold_revision,
                    version.created_at,
                    version.reason,
                )


def _state(phases: set[str], versions: Iterable[VersionStatus]) -> str:
    if not phases:
        return "not running"
    if phases & {Phase.FAILED, Phase.REFUSED}:
        return "failing"
    if phases & {Phase.CATCHING_UP, Phase.STARTING}:
        return "catching up"
    return "standing still" if any(version.still_s is not None for version in versions) else "running"


def _stuck_dead_letters(
    source_topics: Iterable[str], queries: Iterable[QueryStatus]
) -> Iterable[StuckDeadLetters]:
    by_name = {query.query: query for query in queries}
    for topic in sorted(source_topics):
        query = by_name.get(dead_letter_topic(topic))
        if query is not None and query.failing_for_s > 0:
            yield StuckDeadLetters(topic, query.failing_for_s)


def _versions(
    settings: Settings,
    models: Mapping[str, ReadModel],
    records: Mapping[str, ReadModelVersions],
    admin: AdminClient,
    consumer: Consumer,
    query_of: Mapping[str, QueryStatus],
) -> Iterable[VersionStatus]:
    record_ends = RecordEnds(consumer)
    for record in records.values():
        model = models.get(record.read_model)
        if model is None:
            continue
        if any(version.fold_revision not in model.folds for version in record.active):
            # The revision was added after this process imported the module.
            model = reload_for_stream(model.name, settings)
        for version in record.active:
            source_topic = model.reading(version.source_topic).source_topic
            partitions = partition_count(admin, source_topic) or 0
            ends = Offsets.of_ends(end_offsets(consumer, source_topic, partitions))
            folded = ChangelogTail(model.state_schema_of(version.fold_revision))
            # Dead letters and records of other types are not folded: the changelog does not include their offsets.
            query = query_of.get(query_name(model.name, version.number))
            folded.offsets = read_offsets(admin, consumer, source_topic, query).merge(version.starts)
            changelog_partitions = partition_count(admin, version.changelog_topic) or 0
            folded.add(consumer, version.changelog_topic, changelog_partitions, TAIL_RECORDS)
            newest = record_ends.of({(source_topic, p): end for p, end in ends.items() if end})
            unread = record_ends.unread(source_topic, ends, folded.offsets)
            if not folded.offsets.covers(unread) and folded.is_quiet():
                folded.add(consumer, version.changelog_topic, changelog_partitions, LONG_TAIL_RECORDS)
            waiting_s = folded.waiting_s(consumer, source_topic, unread)
            is_still = version.stage is Stage.LIVE and stands_still(
                waiting_s, query, settings.stream.real_time_interval_s
            )
            yield VersionStatus(
                read_model=record.read_model,
                version=version.number,
                stage=version.stage.value,
                source_topic=source_topic,
                events=version.starts.events_until(ends),
                events_behind=folded.offsets.events_until(unread),
                newest_event_age_s=_age_s(end.written_s for end in newest.values()),
                newest_folded_age_s=None
                if folded.written_at_s is None
                else time.time() - folded.written_at_s,
                dead_letters=_dead_letters(admin, consumer, source_topic),
                latency=model.latency.value,
                still_s=waiting_s if is_still else None,
                emit_every_s=None if model.emit_every is None else model.emit_every.total_seconds(),
                event_time_ahead=folded.event_time_ahead(consumer, source_topic),
            )


def _dead_letters(admin: AdminClient, consumer: Consumer, source_topic: str) -> int:
    """Return the number of records on a dead-letter topic; 0 while it does not exist."""
    topic = dead_letter_topic(source_topic)
    return sum(end_offsets(consumer, topic, partition_count(admin, topic) or 0))


def _age_s(written_s: Iterable[float | None]) -> float | None:
    """Return the age of the newest of these times; 0 for one in the future, None if there is none."""
    newest_s = max((one for one in written_s if one is not None), default=None)
    return None if newest_s is None else max(0.0, time.time() - newest_s)
