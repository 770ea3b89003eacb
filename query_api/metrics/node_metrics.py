"""Metrics of a query node, for Prometheus: counted in every worker process, summed when scraped.

PROMETHEUS_MULTIPROC_DIR, a directory that the workers share, must be set before this module is imported (server.py sets it).
"""

import os
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from include.nodes.partition_report import PartitionReport
from include.quality.verified_file import VerifiedStores
from query_api.cluster.node_state import NodeState
from query_api.status.newest_checks import NewestCheck

LOOKUPS = Counter(
    "foldlake_lookups", "Lookups by outcome, answered locally or by a peer.", ["outcome", "served_by"]
)
COMMANDS = Counter("foldlake_commands", "Commands by outcome.", ["command", "outcome"])
CHANGE_STREAMS = Gauge(
    "foldlake_change_streams", "Open streams of changes.", ["read_model"], multiprocess_mode="livesum"
)
LOOKUP_SECONDS = Histogram(
    "foldlake_lookup_seconds",
    "Server-side duration of a named lookup.",
    buckets=(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0),
)
LOOKUPS_LOCAL_OK = LOOKUPS.labels("ok", "local")
LOOKUPS_PEER_OK = LOOKUPS.labels("ok", "peer")


@dataclass(frozen=True)
class NodeReading:
    """What the gauges of a node are computed from.

    is_ready: whether it should receive requests. verified, checks: what quality checks have verified, and the newest ones of the live
    versions; the same on every node. store_dir: the folder of its stores.
    """

    state: NodeState | None
    is_ready: bool
    reports: Iterable[PartitionReport]
    verified: Iterable[VerifiedStores]
    checks: Iterable[NewestCheck]
    store_dir: Path


class _NodeCollector(Collector):
    """Gauges computed from the node's state and store at each scrape."""

    def __init__(self, reading: NodeReading) -> None:
        self._reading = reading
        self._state = reading.state

    def collect(self) -> Iterable[Metric]:
        """Yield every gauge."""
        labels = ["read_model", "version", "partition"]
        lag = GaugeMetricFamily(
            "foldlake_changelog_lag_records", "Changelog records not yet read.", labels=labels
        )
        behind = GaugeMetricFamily("foldlake_events_behind", "Source events not yet folded.", labels=labels)
        ready = GaugeMetricFamily(
            "foldlake_partition_ready", "1 when the partition is ready for lookups.", labels=labels
        )
        for report in self._reading.reports:
            values = [report.read_model, str(report.version), str(report.partition)]
            ready.add_metric(values, float(report.is_ready))
            if report.lag_records is not None:
                lag.add_metric(values, report.lag_records)
            if report.events_behind is not None:
                behind.add_metric(values, report.events_behind)
        yield from (lag, behind, ready)
        yield from self._of_node()
        if self._state is not None:
            yield _live_versions(self._state)
            age = GaugeMetricFamily(
                "foldlake_materializer_age_seconds",
                "Time since the materializer last updated the node's state.",
            )
            age.add_metric([], self._state.age_s())
            yield age
            yield from _ages(self._state)
            bad = GaugeMetricFamily(
                "foldlake_bad_changelog_records",
                "Changelog records skipped since the start.",
                labels=["read_model", "version"],
            )
            for model in self._state.models.values():
                for version in model.versions.values():
                    bad.add_metric([model.name, str(version.number)], version.bad_records)
            yield bad

    def _of_node(self) -> Iterable[Metric]:
        ready = GaugeMetricFamily("foldlake_node_ready", "1 when the node should receive requests.")
        ready.add_metric([], float(self._reading.is_ready))
        yield ready
        try:
            disk = shutil.disk_usage(self._reading.store_dir)
        except OSError:
            return  # the node has not created its folder yet
        free = GaugeMetricFamily(
            "foldlake_store_disk_free_bytes", "Free space on the file system of the node's stores."
        )
        size = GaugeMetricFamily("foldlake_store_disk_bytes", "Size of the file system of the node's stores.")
        free.add_metric([], disk.free)
        size.add_metric([], disk.total)
        yield from (free, size)


def _live_versions(state: NodeState) -> Metric:
    live = GaugeMetricFamily(
        "foldlake_live_version",
        "1 for the live version of each read model; 0, without a version, for a read model that has none.",
        labels=["read_model", "version"],
    )
    for model in state.models.values():
        has_live = model.live is not None
        live.add_metric([model.name, str(model.live) if has_live else ""], float(has_live))
    return live


def _ages(state: NodeState) -> Iterable[Metric]:
    age = GaugeMetricFamily(
        "foldlake_answer_age_seconds",
        "How old an answer from this node can be: time since Foldlake-As-Of.",
        labels=["read_model", "version", "partition"],
    )
    still = GaugeMetricFamily(
        "foldlake_folds_standing_still_seconds",
        "Time for which events have waited and none was folded; 0 while the folds keep up.",
        labels=["read_model", "version"],
    )
    writable = GaugeMetricFamily(
        "foldlake_store_writable",
        "1 while records can be written to the store; 0 when its disk is full.",
        labels=["read_model", "version"],
    )
    for model in state.models.values():
        for version in model.versions.values():
            labels = [model.name, str(version.number)]
            writable.add_metric(labels, float(not version.write_error))
            still.add_metric(labels, version.still_s())
            for number, partition in version.partitions.items():
                if partition.is_ready:
                    age.add_metric([*labels, str(number)], partition.lag_ms() / 1000)
    yield from (age, still, writable)


def exposition(reading: NodeReading) -> bytes:
    """Return all metrics of the node in Prometheus' text format."""
    _forget_dead_workers()
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    registry.register(_NodeCollector(reading))
    registry.register(VerifiedCollector(reading.verified, reading.checks))
    return generate_latest(registry)


def _forget_dead_workers() -> None:
    """Remove the gauges of workers that have ended; their counters remain."""
    for path in Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]).glob("gauge_live*.db"):
        pid = path.stem.rpartition("_")[2]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            multiprocess.mark_process_dead(int(pid))  # type: ignore[no-untyped-call]


class VerifiedCollector(Collector):
    """The ages of what is verified of each store, and the verdicts of the newest checks."""

    def __init__(self, verified: Iterable[VerifiedStores], checks: Iterable[NewestCheck]) -> None:
        self._verified = tuple(verified)
        self._checks = tuple(checks)

    def collect(self) -> Iterable[Metric]:
        """Yield every gauge."""
        now_s = time.time()
        labelled = ["read_model", "version", "store"]
        age = GaugeMetricFamily(
            "foldlake_verified_age_seconds",
            "Age of the oldest event that no passed quality check covers, at most.",
            labels=labelled,
        )
        full = GaugeMetricFamily(
            "foldlake_verified_full_age_seconds",
            "Time since a passed quality check compared every key.",
            labels=labelled,
        )
        for found in self._verified:
            for store, mark in found.stores.items():
                labels = [found.read_model, str(found.version), store]
                age.add_metric(labels, mark.age_s(now_s))
                full.add_metric(labels, mark.full_age_s(now_s))
        failed = GaugeMetricFamily(
            "foldlake_check_failed",
            "1 when the newest quality check of the live version failed; 0 when it passed, or the read model cannot be checked.",
            labels=["read_model", "version"],
        )
        for check in self._checks:
            failed.add_metric([check.read_model, str(check.version)], float(check.passed is False))
        yield from (age, full, failed)
