"""Measures the status document on the topics, without contacting the driver.

The lag of a flow is the end of its source's records less the newest source offset that its outputs, its commits and dead letters show.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from operator import attrgetter

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from include.declarations.latency_override import stream_catalog
from include.kafka.log_reading import end_offsets, log_consumer
from include.kafka.origins import newest_tick
from include.kafka.record_ends import RecordEnds, open_transactions
from include.kafka.topics import admin_client, partition_count
from include.position import Offsets
from include.settings import Settings
from include.status.flow_status import (
    BuildingVersion,
    FlowKind,
    FlowStatus,
    SourceStatus,
    StreamStatus,
)
from include.status.flows import ActiveFlow, flows
from include.stream.folded_offsets import ChangelogTail, is_stalled, read_offsets, written_offsets
from include.stream.query_reports import QueryReport, newest_reports
from include.versions.registry import VersionRegistry
from include.versions.version_record import ReadModelVersions, Stage

# Enough to include the newest record of every source partition: the records of one batch are written interleaved.
TAIL_RECORDS = 300
# After a burst the tasks of a real-time query end one after the other, and the newest record of a source partition may be
# further back. The longer tail is read if events seem to be missing and no record was written lately.
LONG_TAIL_RECORDS = 20_000


def read_stream_status(settings: Settings) -> StreamStatus:
    """Measure the stream's progress; takes about a second.

    Raises KafkaUnavailableError when no broker responds.
    """
    kafka = settings.kafka_connection
    admin = admin_client(kafka)
    with closing(log_consumer(kafka)) as consumer:
        reports = {report.query: report for report in newest_reports(consumer)}
        with VersionRegistry(kafka) as registry:
            records = registry.read()
        measurement = _Measurement(admin, consumer, reports, settings.stream.real_time_interval_s)
        found = [measurement.status(flow) for flow in flows(settings, stream_catalog(settings), records)]
        dead_letters = [
            flow for flow in found if flow.kind == FlowKind.DEAD_LETTERS and flow.records is not None
        ]
        held = {one.topic: one for one in open_transactions(kafka, admin, [one.name for one in dead_letters])}
    sources = (
        SourceStatus(
            flow.name,
            flow.records or 0,
            0.0 if flow.report is None else flow.report.failing_for_s,
            held.get(flow.name),
        )
        for flow in dead_letters
    )
    return StreamStatus(
        (*found, *_unknown(reports.values(), found)), tuple(sources), tuple(_building(records))
    )


def _unknown(reports: Iterable[QueryReport], known: Iterable[FlowStatus]) -> Iterator[FlowStatus]:
    """Yield the queries that a running driver reports, and that belong to no known flow."""
    names = {flow.report.query for flow in known if flow.report is not None}
    for report in reports:
        if report.is_running and report.query not in names:
            yield FlowStatus(
                report.query,
                FlowKind.OTHER,
                report.query,
                source_topic=report.source_topic,
                report=report,
            )


def _building(records: Mapping[str, ReadModelVersions]) -> Iterator[BuildingVersion]:
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


class _Measurement:
    """Measures flows, by the driver's newest reports: name of a query -> report."""

    def __init__(
        self,
        admin: AdminClient,
        consumer: Consumer,
        reports: Mapping[str, QueryReport],
        real_time_interval_s: float,
    ) -> None:
        self._admin = admin
        self._consumer = consumer
        self._reports = reports
        self._real_time_interval_s = real_time_interval_s
        self._record_ends = RecordEnds(consumer)
        self._newest_s: dict[str, float | None] = {}

    def status(self, flow: ActiveFlow) -> FlowStatus:
        """Return the status of a flow; without figures while one of its topics does not exist."""
        found = [self._reports[name] for name in flow.queries if name in self._reports]
        report = min(found, key=attrgetter("reported_age_s"), default=None)
        declared = replace(flow.declared, report=report if report is not None and report.is_running else None)
        if not declared.has_query:
            return replace(declared, newest_output_age_s=self._newest_tick_age_s(declared.output_topic))
        source, ends = declared.source_topic, self._ends(declared.source_topic)
        if ends is None:
            return declared
        written = self._ends(declared.output_topic)
        measured = replace(declared, newest_event_age_s=self._newest_age_s(source, ends))
        if flow.progress is None:
            return replace(measured, records=sum((written or Offsets()).values()))
        if written is None:
            return measured
        # Dead letters and records of other types are not folded: the outputs do not include their offsets.
        read = read_offsets(self._admin, self._consumer, source, report).merge(flow.starts)
        measured = replace(measured, events=flow.starts.events_until(ends), records=sum(written.values()))
        if isinstance(flow.progress, ChangelogTail):
            flow.progress.offsets = read
            return self._folded(measured, flow.progress, report, ends, len(written))
        outputs = written_offsets(self._consumer, declared.output_topic, len(written), flow.progress)
        read = read.merge(outputs)
        unread = self._record_ends.unread(source, ends, read)
        return replace(measured, events_behind=read.events_until(unread))

    def _folded(
        self,
        measured: FlowStatus,
        folded: ChangelogTail,
        report: QueryReport | None,
        ends: Offsets,
        partitions: int,
    ) -> FlowStatus:
        source, changelog = measured.source_topic, measured.output_topic
        folded.add(self._consumer, changelog, partitions, TAIL_RECORDS)
        unread = self._record_ends.unread(source, ends, folded.offsets)
        if not folded.offsets.covers(unread) and folded.is_quiet():
            folded.add(self._consumer, changelog, partitions, LONG_TAIL_RECORDS)
        waiting_s = folded.waiting_s(self._consumer, source, unread)
        is_still = measured.stage == Stage.LIVE and is_stalled(waiting_s, report, self._real_time_interval_s)
        return replace(
            measured,
            events_behind=folded.offsets.events_until(unread),
            newest_output_age_s=None
            if folded.written_at_s is None
            else max(0.0, time.time() - folded.written_at_s),
            still_s=waiting_s if is_still else None,
            event_time_ahead=folded.event_time_ahead(self._consumer, source),
        )

    def _ends(self, topic: str) -> Offsets | None:
        """Return the end offsets of a topic; None if it does not exist."""
        partitions = partition_count(self._admin, topic) if topic else None
        return None if partitions is None else Offsets.of_ends(end_offsets(self._consumer, topic, partitions))

    def _newest_age_s(self, topic: str, ends: Offsets) -> float | None:
        """Return the age of the newest record of a topic, read once; 0 for one in the future, None if there is none."""
        if topic not in self._newest_s:
            newest = self._record_ends.of({(topic, p): end for p, end in ends.items() if end})
            written_s = (end.written_s for end in newest.values() if end.written_s is not None)
            self._newest_s[topic] = max(written_s, default=None)
        newest_s = self._newest_s[topic]
        return None if newest_s is None else max(0.0, time.time() - newest_s)

    def _newest_tick_age_s(self, topic: str) -> float | None:
        tick_ms = newest_tick(self._consumer, topic, partition_count(self._admin, topic) or 0)
        return None if tick_ms is None else time.time() - tick_ms / 1000
