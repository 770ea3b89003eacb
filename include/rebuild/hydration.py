"""The stage `hydrate`: every query node has loaded the candidate beside the live version."""

import json
import logging
import time
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from include.kafka.topics import admin_client
from include.nodes.partition_report import PARTITIONS_PATH, PartitionReport
from include.nodes.peers import HOP_ANY, Peer, PeerDownError
from include.nodes.routing_table import routing_table
from include.rebuild.errors import StageTimeoutError
from include.settings import Settings
from include.versions.registry import Stage, VersionRegistry
from include.versions.transitions import record_of, require_not_ended
from include.work_progress import WorkProgress

LOG = logging.getLogger(__name__)
POLL_INTERVAL_S = 0.5
REQUEST_TIMEOUT_S = 5.0
# Less than a second's worth of records at the rate at which a node loads them.
SMALL_LAG = 1_000


@dataclass(frozen=True)
class Hydration:
    """How far the nodes are with a version: changelog records read, of those to be read, and what is still waited for."""

    read: int
    total: int
    waiting_for: tuple[str, ...]


def hydrate(settings: Settings, read_model: str, number: int) -> None:
    """Wait until every node holds every partition of the version that it owns or stands by for, with a small lag.

    Raises StageTimeoutError when that does not happen in time, VersionChangeError when the version is none to load.
    """
    registry = VersionRegistry(settings.kafka.bootstrap_servers, settings.topics.replication_factor)
    admin = admin_client(settings.kafka.bootstrap_servers)
    began_s = time.monotonic()
    progress = WorkProgress(f"loading of {read_model} v{number} on the query nodes", "records", 0)
    try:
        while True:
            version = require_not_ended(record_of(registry, read_model), number)
            if version.stage in (Stage.LIVE, Stage.PREVIOUS):
                LOG.info("v%d of %s is %s already", number, read_model, version.stage)
                return
            found = hydration(reports(admin), read_model, number, settings.topics.partitions)
            progress.total = max(found.total, 1)
            if not found.waiting_for:
                progress.reached(progress.total)
                return
            progress.reached(
                min(found.read, progress.total - 1), f"; waiting for {'; '.join(found.waiting_for[:3])}"
            )
            if time.monotonic() - began_s > settings.rebuild.hydrate_timeout_s:
                raise StageTimeoutError(
                    f"The query nodes have not loaded v{number} of {read_model} within {settings.rebuild.hydrate_timeout_s} s: "
                    f"{'; '.join(found.waiting_for[:5])}. `./foldlake status` shows whether they are up."
                )
            time.sleep(POLL_INTERVAL_S)
    finally:
        registry.close()


def reports(admin: AdminClient) -> dict[str, list[PartitionReport] | None]:
    """Return every node of the group, by URL, and its own reports; None where it does not answer."""
    try:
        table = routing_table(admin, REQUEST_TIMEOUT_S)
    except KafkaException:
        return {}
    return {url: _reports_of(url) for url in (table.nodes if table else ())}


def _reports_of(url: str) -> list[PartitionReport] | None:
    try:
        answer: list[dict[str, Any]] = json.loads(
            Peer(url).get(PARTITIONS_PATH, HOP_ANY, REQUEST_TIMEOUT_S).body
        )
        return [PartitionReport.from_json(fields) for fields in answer]
    except (PeerDownError, ValueError, TypeError, KeyError):
        return None


def hydration(
    nodes: dict[str, list[PartitionReport] | None], read_model: str, number: int, partitions: int
) -> Hydration:
    """Judge the nodes' own reports: a partition counts at each node that owns it or stands by for it."""
    waiting: list[str] = [] if nodes else ["any query node (none is in the group)"]
    owned: set[int] = set()
    read = total = 0
    for url, own in nodes.items():
        if own is None:
            waiting.append(f"{url} does not answer")
            continue
        live = {
            r.partition: r.events_behind or 0
            for r in own
            if r.read_model == read_model and r.stage == Stage.LIVE
        }
        ours = [r for r in own if r.read_model == read_model and r.version == number]
        if not ours:
            waiting.append(f"{url} has not heard of v{number} yet")
        for report in ours:
            if url == report.owner:
                owned.add(report.partition)
            elif url not in report.standbys:
                continue
            read += report.position or 0
            total += report.end or 0
            reason = _not_ready(report, live.get(report.partition, 0))
            if reason:
                waiting.append(f"{url} partition {report.partition}: {reason}")
    missing = sorted(set(range(partitions)) - owned)
    if missing and not waiting:
        waiting.append(f"an owner of partition {', '.join(map(str, missing))}")
    return Hydration(read, total, tuple(waiting))


def _not_ready(report: PartitionReport, live_events_behind: int) -> str | None:
    if not report.is_ready:
        return "being read"
    if (report.lag_records or 0) > SMALL_LAG:
        return f"{report.lag_records:,} records behind the changelog"
    if (report.events_behind or 0) > live_events_behind + SMALL_LAG:
        return f"{report.events_behind:,} events behind the log"
    return None
