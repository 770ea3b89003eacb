"""Hydration: every query node loads the candidate beside the live version."""

import logging
from contextlib import closing
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from include.declarations.load import read_model as declared_read_model
from include.kafka.topics import admin_client
from include.nodes.node_url import PeerRule
from include.nodes.partition_report import PartitionReport, reports_of
from include.nodes.peer_tls import ClientTls
from include.nodes.peers import Peer, PeerDownError
from include.nodes.routing_table import routing_table
from include.rebuild.errors import StageTimeoutError
from include.rebuild.stage_progress import StageReporter
from include.settings import Settings
from include.versions.registry import VersionRegistry, record_of
from include.versions.transitions import require_not_ended
from include.versions.version_record import Stage
from include.waiting import wait_for
from include.work_progress import WorkProgress

LOG = logging.getLogger(__name__)
POLL_INTERVAL_S = 0.5
REQUEST_TIMEOUT_S = 5.0
# A node loads this many records in less than a second.
SMALL_LAG = 1_000


@dataclass(frozen=True)
class Hydration:
    """How much of a version the nodes have loaded: changelog records read, records in total, and what is missing."""

    read: int
    total: int
    missing: tuple[str, ...]


def hydrate_version(settings: Settings, read_model: str, number: int, report: StageReporter) -> None:
    """Wait until every node has loaded every partition of the version that it owns or is a standby for, with a small lag.

    Raises StageTimeoutError when they do not within the timeout, VersionAbandonedError or VersionRetiredError when the version
    has ended.
    """
    timeout_s = settings.rebuild.hydrate_timeout_s
    admin = admin_client(settings.kafka_connection)
    peers = PeerRule.of_client(settings)
    partitions = declared_read_model(read_model, settings.declaration_folders).partitions(settings.topics)
    progress = WorkProgress(f"loading of {read_model} v{number} on the query nodes", "records", 0, report)
    missing: tuple[str, ...] = ()

    def is_loaded() -> bool:
        nonlocal missing
        version = require_not_ended(record_of(registry, read_model), number)
        if version.stage in (Stage.LIVE, Stage.PREVIOUS):
            LOG.info("v%d of %s is %s already", number, read_model, version.stage)
            return True
        found = hydration(reports(admin, peers), read_model, number, partitions)
        missing = found.missing
        _log_progress(progress, found)
        return not missing

    with VersionRegistry(settings.kafka_connection) as registry:
        if not wait_for(is_loaded, timeout_s=timeout_s, poll_s=POLL_INTERVAL_S):
            raise StageTimeoutError(
                f"The query nodes have not loaded v{number} of {read_model} within {timeout_s} s: {'; '.join(missing[:5])}. "
                "`./foldlake status` shows whether they are up."
            )


def _log_progress(progress: WorkProgress, found: Hydration) -> None:
    progress.total = total = max(found.total, 1)
    if found.missing:
        progress.reached(min(found.read, total - 1), f"; missing: {'; '.join(found.missing[:3])}")
    else:
        progress.reached(total)


def reports(admin: AdminClient, peers: PeerRule) -> dict[str, list[PartitionReport] | None]:
    """Return the reports of every node of the group, by the node's URL; None for a node that does not respond."""
    try:
        table = routing_table(admin, REQUEST_TIMEOUT_S, peers)
    except KafkaException:
        return {}
    return {url: _reports_of(url, peers.tls) for url in (table.nodes if table else ())}


def _reports_of(url: str, tls: ClientTls) -> list[PartitionReport] | None:
    try:
        with closing(Peer(url, tls=tls)) as node:
            return reports_of(node, REQUEST_TIMEOUT_S)
    except PeerDownError:
        return None


def hydration(
    nodes: dict[str, list[PartitionReport] | None], read_model: str, number: int, partitions: int
) -> Hydration:
    """Evaluate the nodes' own reports: a partition counts at its owner and at each of its standbys."""
    missing: list[str] = [] if nodes else ["query nodes (the consumer group has no members)"]
    owned: set[int] = set()
    read = total = 0
    for url, own in nodes.items():
        if own is None:
            missing.append(f"{url} does not respond")
            continue
        live = {
            r.partition: r.events_behind or 0
            for r in own
            if r.read_model == read_model and r.stage == Stage.LIVE
        }
        loading = [r for r in own if r.read_model == read_model and r.version == number]
        if not loading:
            missing.append(f"{url} does not list v{number} yet")
        for report in loading:
            if url == report.owner:
                owned.add(report.partition)
            elif url not in report.standbys:
                continue
            read += report.position or 0
            total += report.end or 0
            reason = _not_ready(report, live.get(report.partition, 0))
            if reason:
                missing.append(f"{url} partition {report.partition}: {reason}")
    unowned = sorted(set(range(partitions)) - owned)
    if unowned and not missing:
        missing.append(f"an owner of partition {', '.join(map(str, unowned))}")
    return Hydration(read, total, tuple(missing))


def _not_ready(report: PartitionReport, live_events_behind: int) -> str | None:
    if not report.is_ready:
        return "loading"
    if (report.lag_records or 0) > SMALL_LAG:
        return f"{report.lag_records:,} records behind the changelog"
    if (report.events_behind or 0) > live_events_behind + SMALL_LAG:
        return f"{report.events_behind:,} events behind the log"
    return None
