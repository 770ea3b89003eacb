"""The gate before a version becomes live: the driver folds it, every node has loaded it, and it lacks no event of the live one."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from include.declarations.catalog import Catalog
from include.declarations.load import model_of
from include.errors import FoldlakeError
from include.kafka.log_reading import end_offsets, log_consumer
from include.kafka.topics import admin_client
from include.nodes.node_url import PeerRule
from include.nodes.partition_report import PartitionReport
from include.position import Offsets
from include.rebuild.hydration import hydration, reports
from include.rebuild.routed_events import RoutedEvents
from include.settings import Settings
from include.stream.query_reports import CONTINUOUS, Phase, describe_query, query_status
from include.versions.registry import VersionRegistry, record_of
from include.waiting import wait_for
from include.words import plural

LOG = logging.getLogger(__name__)
POLL_INTERVAL_S = 0.5
# Of a version that every node lacks, each line says the same.
SHOWN = 5
# The reports of each node by its URL; None for a node that does not respond.
Reports = Mapping[str, list[PartitionReport] | None]


@dataclass(frozen=True)
class GateResult:
    """What a version lacks to become live; `missing` is empty if it may.

    live: the number of the version that was live when the gate began; 0 for none, None when it could not be read.
    is_refused: whether the stream driver refuses to fold the version, which waiting does not change.
    """

    live: int | None
    missing: tuple[str, ...] = ()
    is_refused: bool = False

    def __str__(self) -> str:
        """Return what is missing in one line."""
        further = len(self.missing) - SHOWN
        shown = "; ".join(self.missing[:SHOWN]) or "nothing"
        return f"{shown}; and {further} more" if further > 0 else shown


def wait_at_gate(
    settings: Settings, catalog: Catalog, read_model: str, number: int, timeout_s: float
) -> GateResult:
    """Wait until a candidate or previous version may become live; after the timeout, return what it lacks.

    It may when the stream driver folds it in real time, and every node has loaded each partition that it owns or is a standby
    for, up to the events that the live version contained when this function was called. No client then sees an event that it
    has seen before that time disappear. If it folds another version of the source topic than the live one, it must instead contain what
    its routes make of all events that their sources had then.

    Raises KafkaUnavailableError, UnknownVersionError, and NoRouteError if nothing writes the topic that the version folds.
    """
    gate = _Gate(settings, catalog, read_model, number)
    result = GateResult(None)

    def is_open() -> bool:
        nonlocal result
        result = gate.evaluate()
        return not result.missing

    def log(waited_s: float) -> None:
        LOG.info("progress: gate of %s v%d: %.0f s, missing: %s", read_model, number, waited_s, result)

    try:
        wait_for(is_open, timeout_s=timeout_s, poll_s=POLL_INTERVAL_S, while_waiting=log)
    finally:
        gate.close()
    return result


def look_at_gate(settings: Settings, catalog: Catalog, read_model: str, number: int) -> GateResult:
    """Return what a version lacks now, without waiting; never raises for a server that does not respond."""
    try:
        return wait_at_gate(settings, catalog, read_model, number, timeout_s=0)
    except FoldlakeError as error:
        return GateResult(None, (f"it cannot be checked ({error})",))


class _Gate:
    """One version, compared with the version that is live when the gate is created."""

    def __init__(self, settings: Settings, catalog: Catalog, read_model: str, number: int) -> None:
        self._kafka = settings.kafka_connection
        self._read_model = read_model
        self._number = number
        model = model_of(catalog, read_model)
        self._partitions = model.partitions(settings.topics)
        self._admin = admin_client(self._kafka)
        self._peers = PeerRule.of_client(settings)
        self._live_position: LivePosition | None = None
        with VersionRegistry(self._kafka) as registry:
            record = record_of(registry, read_model)
        live, version = record.live, record.version(number)
        self._source_topic = model.reading("" if live is None else live.source_topic).source_topic
        self._starts = Offsets() if version is None else version.starts
        self._live = 0 if live is None else live.number
        self._live_ends = Offsets() if live is None else self._end_offsets(live.changelog_topic)
        self._routed: RoutedEvents | None = None
        topic = self._source_topic if version is None else model.reading(version.source_topic).source_topic
        if version is not None and topic != self._source_topic:
            self._routed = RoutedEvents(self._kafka, catalog, read_model, version, topic)

    def close(self) -> None:
        """Close the connections."""
        if self._routed is not None:
            self._routed.close()

    def evaluate(self) -> GateResult:
        """Return what the version lacks now."""
        query = query_status(self._kafka, self._read_model, self._number)
        nodes = reports(self._admin, self._peers)
        is_folded = query is not None and query.phase in CONTINUOUS
        missing = (
            *(() if is_folded else (describe_query(query),)),
            *hydration(nodes, self._read_model, self._number, self._partitions).missing,
            *self._lacking(nodes),
        )
        return GateResult(self._live, missing, query is not None and query.phase == Phase.REFUSED)

    def _lacking(self, nodes: Reports) -> tuple[str, ...]:
        if self._routed is not None:
            return self._routed.lacking(nodes)
        if self._live_position is None:
            found = live_position(nodes, self._read_model, self._live, self._live_ends)
            if found.unknown:
                return found.unknown
            # Fixed from now on: the live version continues, and a later position would never be reached under load.
            self._live_position = clip_to(found, self._end_offsets(self._source_topic))
            if self._live_position != found:
                LOG.warning(
                    "%s has lost events that v%d contains: they are not required",
                    self._source_topic,
                    self._live,
                )
        needed = skip_before(self._live_position, self._starts)
        return lacking_nodes(nodes, self._read_model, self._number, needed)

    def _end_offsets(self, topic: str) -> Offsets:
        consumer = log_consumer(self._kafka)
        try:
            return Offsets.of_ends(end_offsets(consumer, topic, self._partitions))
        finally:
            consumer.close()


@dataclass(frozen=True)
class LivePosition:
    """How far a live version had folded its source: changelog partition -> source offsets.

    version: its number. unknown: why the position is not known; empty once it is.
    """

    version: int
    by_partition: Mapping[int, Offsets] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


def clip_to(live: LivePosition, source_ends: Offsets) -> LivePosition:
    """Return the position without events that the source does not contain: after a power failure, it may have lost some."""
    by_partition = {
        partition: Offsets({p: min(offset, source_ends.of(p)) for p, offset in offsets.items()})
        for partition, offsets in live.by_partition.items()
    }
    return replace(live, by_partition=by_partition)


def skip_before(live: LivePosition, starts: Offsets) -> LivePosition:
    """Return the position without the source partitions that it has not read beyond these offsets: another version skips their events."""
    by_partition = {
        partition: Offsets({p: offset for p, offset in offsets.items() if offset > starts.of(p)})
        for partition, offsets in live.by_partition.items()
    }
    return replace(live, by_partition=by_partition)


def live_position(
    nodes: Reports, read_model: str, version: int, changelog_ends: Mapping[int, int]
) -> LivePosition:
    """Return the live version's position: the source offsets of all records below these end offsets of its changelog.

    A node may have answered from any of these records. It is therefore unknown until a node has read each partition up to its
    end offset, even if the node that was ahead of all others is down.
    """
    by_partition: dict[int, Offsets] = {}
    unknown = []
    for partition, end in sorted(changelog_ends.items()):
        reports = list(_reports(nodes, read_model, version, partition))
        if not any(report.is_ready and (report.position or 0) >= end for report in reports):
            unknown.append(
                f"the position of the live v{version} in partition {partition}: no node has read its changelog up to offset {end:,}"
            )
        folded = Offsets()
        for report in reports:
            folded = folded.merge(report.folded)
        by_partition[partition] = folded
    return LivePosition(version, by_partition, tuple(unknown))


def lacking_nodes(nodes: Reports, read_model: str, version: int, live: LivePosition) -> tuple[str, ...]:
    """Return a line for each node and partition in which a version does not cover the live version's position."""
    return tuple(
        f"{report.reported_by} partition {partition}: {gap}"
        for partition, needed in sorted(live.by_partition.items())
        for report in _reports(nodes, read_model, version, partition)
        if report.is_stored and (gap := _gap(report, live.version, needed))
    )


def _reports(nodes: Reports, read_model: str, version: int, partition: int) -> Iterator[PartitionReport]:
    for own in nodes.values():
        for report in own or ():
            if (report.read_model, report.version, report.partition) == (read_model, version, partition):
                yield report


def _gap(report: PartitionReport, live: int, needed: Offsets) -> str:
    """Return which of the needed events a node lacks; empty if it has them all."""
    source = next((p for p, end in sorted(needed.items()) if report.folded.of(p) < end), None)
    if source is None:
        return ""
    lacking = report.folded.events_until(needed)
    return f"lacks up to {plural(lacking, 'event')} of v{live}, the newest at offset {needed.of(source) - 1:,} of source partition {source}"
