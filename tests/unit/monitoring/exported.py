"""What a node exports for Prometheus, rendered by the node's own code from a state of the system, as series with Prometheus' labels."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from prometheus_client import REGISTRY, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from include.nodes.certificates import Certificate
from include.nodes.partition_report import PartitionReport
from include.position import Offsets
from include.quality.newest_checks import NewestCheck
from include.quality.verified_stores import VerifiedStores
from include.quality.verified_tag import VerifiedMark
from include.settings import NodeSettings
from include.status.flow_status import FlowKind, FlowStatus, SourceStatus, StreamStatus
from include.stream.query_reports import BatchProgress, QueryReport
from query_api.cluster.node_state import ModelState, NodeState, PartitionState, VersionState
from query_api.http.lookups.router import OTHER_OUTCOME
from query_api.lookup.lookup_results import FailureReason
from query_api.metrics.node_metrics import (
    CHANGE_STREAMS,
    COMMANDS,
    LOOKUP_SECONDS,
    LOOKUPS,
    NodeReading,
    node_exposition,
)
from query_api.metrics.status_metrics import status_exposition, stream_exposition
from query_api.status.node_view import readiness
from tests.unit.query_api.http.contract.test_problem_slugs import slugs

INSTANCE = "node-1:5051"
DAY_S = 86_400
DISK_BYTES = 1e11
QUERY = QueryReport(
    "balance/v1", "real time", 0, "", 4711, "local[28]", 0.5, BatchProgress(state_rows=42, state_bytes=4_096)
)
FOLD = FlowStatus(
    query="balance/v1",
    kind=FlowKind.FOLD,
    name="balance",
    belongs_to="balance",
    version=1,
    stage="live",
    source_topic="balance",
    output_topic="balance.v1.changelog",
    events=90_000,
    events_behind=7,
    newest_event_age_s=2.5,
    newest_output_age_s=0.1,
    report=QUERY,
)
ROUTE = FlowStatus(
    query="route/pos-to-loyalty",
    kind=FlowKind.ROUTE,
    name="pos-to-loyalty",
    belongs_to="pos-to-loyalty",
    stage="live",
    source_topic="pos",
    output_topic="loyalty",
    events=90_000,
    events_behind=7,
)
EMISSION = replace(
    FOLD,
    query="emission/totals/v1",
    kind=FlowKind.EMISSION,
    name="totals",
    output_topic="totals",
    report=None,
)
BALANCE, POS = SourceStatus("balance", 3), SourceStatus("pos", 0)
STREAM = StreamStatus((FOLD, ROUTE, EMISSION), (BALANCE, POS))
LIVE = VersionState(1, "live", "balance.v1.changelog")
Key = tuple[str, tuple[tuple[str, str], ...]]
"""A series: its name, and its labels in order."""


def node_state(
    version: VersionState = LIVE,
    *,
    is_ready: bool = True,
    confirmed_s_ago: float = 0.5,
    live: int | None = LIVE.number,
) -> NodeState:
    """Return the state of a node that owns the one partition of a read model, and has this version of it."""
    now_s = time.time()
    confirmed_s = now_s - confirmed_s_ago
    partition = PartitionState(is_ready, 10, 10, confirmed_at=confirmed_s, as_of=confirmed_s)
    version = replace(version, partitions={0: partition})
    url = "http://127.0.0.1:5051"
    model = ModelState("balance", "balance", 1, 1, live, {1: version}, frozenset({0}), owners={0: url})
    return NodeState("node-1", url, written_at=now_s, is_kafka_reachable=True, models={"balance": model})


def check(passed: bool | None = True) -> NewestCheck:
    return NewestCheck(
        "balance", 1, "full", ("lake", "nodes"), passed, "", datetime.now(UTC), 9.0, "report.html"
    )


def verified(full_s_ago: float) -> VerifiedStores:
    now_s = time.time()
    mark = VerifiedMark(Offsets({0: 10}), now_s - 60.0, {0: 1}, "daily", now_s - full_s_ago)
    return VerifiedStores("balance", 1, {"lake": mark, "nodes": mark})


def section(data: object, error: str | None = None) -> dict[str, Any]:
    return {"as_of": None, "age_s": 1.0, "error": error, "data": data}


def services(**is_up: bool) -> dict[str, Any]:
    names = {"kafka": "Kafka", "registry": "Schema registry", "airflow": "Airflow"}
    return section([{"service": name, "is_up": is_up.get(key, True)} for key, name in names.items()])


def lake(age_s: float, events_behind: int) -> dict[str, Any]:
    fields = {"table": "balance", "exists": True, "bytes": 4_096}
    return section([fields | {"age_s": age_s, "events_behind": events_behind}])


def sections(**changed: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the sections of a healthy system, with other ones."""
    return {"services": services(), "lake": lake(100.0, 7)} | changed


@dataclass(frozen=True)
class System:
    """A system with one node. state, stream, sections: None where the node does not return the page.

    lookups, commands: outcome -> number a minute. lookup_s: the duration of each lookup.
    """

    state: NodeState | None = field(default_factory=node_state)
    stream: StreamStatus | None = STREAM
    sections: Mapping[str, Mapping[str, Any]] | None = field(default_factory=sections)
    checks: tuple[NewestCheck, ...] = field(default_factory=lambda: (check(),))
    verified: tuple[VerifiedStores, ...] = field(default_factory=lambda: (verified(DAY_S / 2),))
    lookups: Mapping[str, int] = field(default_factory=lambda: {"ok": 600, "unknown-key": 60})
    commands: Mapping[str, int] = field(default_factory=lambda: {"accepted": 60, "invalid-command": 5})
    lookup_s: float = 0.001
    disk_free: float = 0.5
    certificate_days: float = 365.0

    def gauges(self) -> dict[Key, float]:
        """Return each series that does not count, with its value; `up` included."""
        pages = {
            "foldlake-nodes": None if self.state is None else self._node_page(self.state),
            "foldlake-stream": None if self.stream is None else stream_exposition(self.stream),
            "foldlake-status": None if self.sections is None else status_exposition(self.sections),
        }
        found: dict[Key, float] = {}
        for job, page in pages.items():
            found[_key("up", {}, job)] = float(page is not None)
            found |= dict(_series(page or b"", job))
        free = _key("foldlake_store_disk_free_bytes", {}, "foldlake-nodes")
        if free in found:  # of the machine that runs the test
            found[free] = self.disk_free * DISK_BYTES
            found[_key("foldlake_store_disk_bytes", {}, "foldlake-nodes")] = DISK_BYTES
        return found

    def _node_page(self, state: NodeState) -> bytes:
        partition = state.models["balance"].versions[1].partitions[0]
        report = PartitionReport(
            read_model="balance",
            version=1,
            stage="live",
            partition=0,
            owner=state.url,
            standbys=(),
            reported_by=state.url,
            is_held=True,
            is_ready=partition.is_ready,
            changelog_topic=LIVE.changelog_topic,
            lag_records=0,
            events_behind=0,
        )
        is_ready = not readiness(state, NodeSettings()).not_ready
        ends = datetime.now(UTC) + timedelta(days=self.certificate_days)
        certificate = Certificate("node-1", Path("node-1.pem"), "CN=node-1", (), ends)
        return node_exposition(
            NodeReading(state, is_ready, [report], self.verified, self.checks, Path(), [certificate])
        )

    def counters(self) -> dict[Key, float]:
        """Return each series that counts, with its increase a minute."""
        if self.state is None:
            return {}
        before = _counted()
        for outcome, number in self.lookups.items():
            LOOKUPS.labels(outcome, "local").inc(number)
        for outcome, number in self.commands.items():
            COMMANDS.labels("balance.addFunds", outcome).inc(number)
        for _ in range(100):
            LOOKUP_SECONDS.observe(self.lookup_s)
        return {
            key: value - before.get(key, 0.0)
            for key, value in _counted().items()
            if value != before.get(key, 0.0) or "_bucket" in key[0]
        }


def every_series() -> set[Key]:
    """Return series with every name, and every value of the labels `outcome`, `stage` and `service`, that nodes export."""
    outcomes = ["ok", OTHER_OUTCOME, *(reason.slug for reason in FailureReason)]
    commands = ["accepted", "schema-refused", *slugs()]
    CHANGE_STREAMS.labels("balance").set(0)
    system = System(lookups=dict.fromkeys(outcomes, 1), commands=dict.fromkeys(commands, 1))
    return {*system.gauges(), *system.counters(), *_counted()}


def stream_with(
    fold: FlowStatus = FOLD, route: FlowStatus = ROUTE, emission: FlowStatus = EMISSION
) -> StreamStatus:
    """Return the status of the stream with these flows instead of the healthy ones."""
    return replace(STREAM, flows=(fold, route, emission))


def _counted() -> dict[Key, float]:
    page = generate_latest(REGISTRY)
    return {key: value for key, value in _series(page, "foldlake-nodes") if key[0].startswith("foldlake_")}


def _series(page: bytes, job: str) -> Iterator[tuple[Key, float]]:
    for family in text_string_to_metric_families(page.decode()):
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                yield _key(sample.name, sample.labels, job), sample.value


def _key(name: str, labels: Mapping[str, str], job: str) -> Key:
    return name, tuple(sorted({**labels, "instance": INSTANCE, "job": job}.items()))
