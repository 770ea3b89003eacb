"""Metrics of a query node, for Prometheus: counted in every worker process, summed when scraped.

PROMETHEUS_MULTIPROC_DIR, a directory that the workers share, must be set before this module is imported (server.py sets it).
"""

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, multiprocess
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from include.nodes.certificates import Certificate
from include.nodes.partition_report import PartitionReport
from include.quality.newest_checks import NewestCheck
from include.quality.verified_stores import VerifiedStores
from query_api.cluster.node_state import NodeState
from query_api.metrics.gauges import Gauges, exposition, gauge
from query_api.metrics.metric_folders import folders_of_node

LOOKUPS = Counter(
    "foldlake_lookups",
    "Named lookups and records, counted once, by the node that received the request. outcome: ok, a failure reason, or other; "
    "served_by: local or peer.",
    ["outcome", "served_by"],
)
COMMANDS = Counter(
    "foldlake_commands", "Commands. outcome: accepted, or the slug of a problem.", ["command", "outcome"]
)
CHANGE_STREAMS = Gauge(
    "foldlake_change_streams", "Open streams of changes.", ["read_model"], multiprocess_mode="livesum"
)
SPANS_DROPPED = Counter(
    "foldlake_spans_dropped", "Spans of requests that the collector of traces did not take."
)
LOOKUP_SECONDS = Histogram(
    "foldlake_lookup_seconds",
    "Server-side duration of successful named lookups whose only parameter is the key.",
    buckets=(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0),
)
LOOKUPS_LOCAL_OK = LOOKUPS.labels("ok", "local")
LOOKUPS_PEER_OK = LOOKUPS.labels("ok", "peer")


@dataclass(frozen=True)
class NodeReading:
    """What the gauges of a node are computed from.

    is_ready: whether it should receive requests. verified, checks: what quality checks have verified, and the newest ones of the live
    versions; the same on every node. store_dir: the folder of its stores. certificates: with which it serves, and the CA's.
    """

    state: NodeState | None
    is_ready: bool
    reports: Iterable[PartitionReport]
    verified: Iterable[VerifiedStores]
    checks: Iterable[NewestCheck]
    store_dir: Path
    certificates: Iterable[Certificate] = ()


def node_exposition(reading: NodeReading) -> bytes:
    """Return all metrics of the node in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Counted(folders_of_node(Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]))))
    state = () if reading.state is None else tuple(_of_state(reading.state))
    return exposition((*_of_node(reading), *state, *_of_checks(reading)), registry)


def _of_node(reading: NodeReading) -> Iterator[Metric]:
    partitions = Gauges(
        ["read_model", "version", "partition"],
        [([one.read_model, str(one.version), str(one.partition)], one) for one in reading.reports],
    )
    yield partitions.of(
        "foldlake_changelog_lag_records", "Changelog records not yet read.", lambda one: one.lag_records
    )
    yield partitions.of(
        "foldlake_events_behind", "Source events not yet folded.", lambda one: one.events_behind
    )
    yield partitions.of(
        "foldlake_partition_ready",
        "1 when the partition is ready for lookups.",
        lambda one: float(one.is_ready),
    )
    yield Gauges(["certificate"], [([str(one.path)], one) for one in reading.certificates]).of(
        "foldlake_certificate_expires_in_seconds",
        "Time until the end of a certificate of the node; negative after that.",
        lambda one: one.expires_in_s,
    )
    yield gauge("foldlake_node_ready", "1 when the node should receive requests.", float(reading.is_ready))
    try:
        disk = shutil.disk_usage(reading.store_dir)
    except OSError:
        return  # the node has not created its folder yet
    yield gauge(
        "foldlake_store_disk_free_bytes", "Free space on the file system of the node's stores.", disk.free
    )
    yield gauge("foldlake_store_disk_bytes", "Size of the file system of the node's stores.", disk.total)


def _of_state(state: NodeState) -> Iterator[Metric]:
    models = state.models.values()
    live = [([m.name, "" if m.live is None else str(m.live)], float(m.live is not None)) for m in models]
    yield Gauges(["read_model", "version"], live).of(
        "foldlake_live_version",
        "1 for the live version of each read model; 0, without a version, for a read model that has none.",
        lambda is_live: is_live,
    )
    yield gauge(
        "foldlake_materializer_age_seconds",
        "Time since the materializer last updated the node's state.",
        state.age_s(),
    )
    found = [([m.name, str(v.number)], v) for m in models for v in m.versions.values()]
    ready = [
        ([*labels, str(number)], partition)
        for labels, version in found
        for number, partition in version.partitions.items()
        if partition.is_ready
    ]
    yield Gauges(["read_model", "version", "partition"], ready).of(
        "foldlake_answer_age_seconds",
        "How old an answer from this node can be: time since Foldlake-As-Of.",
        lambda partition: partition.lag_ms() / 1000,
    )
    versions = Gauges(["read_model", "version"], found)
    yield versions.of(
        "foldlake_folds_standing_still_seconds",
        "Time for which events have waited and none was folded; 0 while the folds keep up.",
        lambda version: version.still_s(),
    )
    yield versions.of(
        "foldlake_store_writable",
        "1 while records can be written to the store; 0 when its disk is full.",
        lambda version: float(not version.write_error),
    )
    yield versions.of(
        "foldlake_bad_changelog_records",
        "Changelog records skipped since the start.",
        lambda version: version.bad_records,
    )
    yield versions.of(
        "foldlake_copied_records",
        "Records that an empty store has received from a peer instead of the changelog, since the start.",
        lambda version: version.copied_records,
    )


def _of_checks(reading: NodeReading) -> Iterator[Metric]:
    now_s = time.time()
    marks = [
        ([found.read_model, str(found.version), store], mark)
        for found in reading.verified
        for store, mark in found.stores.items()
    ]
    stores = Gauges(["read_model", "version", "store"], marks)
    yield stores.of(
        "foldlake_verified_age_seconds",
        "Age of the oldest event that no passed quality check covers, at most; none before the first check.",
        lambda mark: mark.age_s(now_s),
    )
    yield stores.of(
        "foldlake_verified_full_age_seconds",
        "Time since a passed quality check compared every key.",
        lambda mark: mark.full_age_s(now_s),
    )
    checks = [([check.read_model, str(check.version)], check) for check in reading.checks]
    yield Gauges(["read_model", "version"], checks).of(
        "foldlake_check_failed",
        "1 when the newest quality check of the live version failed; 0 when it passed, or the read model cannot be checked.",
        lambda check: float(check.passed is False),
    )


class _Counted(Collector):
    """What the workers of all servers of the node have counted."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = tuple(folders)

    def collect(self) -> Iterable[Metric]:
        """Return the sums over all workers."""
        _forget_dead_workers(self._folders)
        files = [str(path) for folder in self._folders for path in folder.glob("*.db")]
        found: Iterable[Metric] = multiprocess.MultiProcessCollector.merge(files)  # type: ignore[no-untyped-call]
        return found


def _forget_dead_workers(folders: Iterable[Path]) -> None:
    """Remove the gauges of workers that have ended; their counters remain."""
    for path in [path for folder in folders for path in folder.glob("gauge_live*.db")]:
        pid = path.stem.rpartition("_")[2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            multiprocess.mark_process_dead(int(pid), str(path.parent))  # type: ignore[no-untyped-call]
