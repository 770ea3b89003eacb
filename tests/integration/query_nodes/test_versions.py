"""Readers switch to a promoted version as a whole; a retired version is removed from disk."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import psutil

from include.versions.registry import VersionRegistry
from include.versions.version_record import ReadModelVersions, Stage, Version
from tests.support.changelog_writer import ChangelogWriter
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until


def test_version_is_hydrated_promoted_and_the_old_one_retired(nodes: NodeStack) -> None:
    registry = VersionRegistry(nodes.settings.kafka_connection)
    candidate = ChangelogWriter(nodes.settings, version=2)
    candidate.make_topics()
    new = {customer: amount + Decimal("1000.00") for customer, amount in nodes.expected.items()}
    for customer, amount in new.items():
        candidate.write(customer, amount, event_count=50, source_offset=50)
    candidate.flush()

    _append(registry, Version(2, Stage.CANDIDATE, 1, candidate.topic, "test", "now"))
    wait_until(lambda: all(_is_hydrated(nodes, p, 2) for p in nodes.ports), "the candidate is hydrated")
    answer = nodes.get(nodes.ports[0], "/api/read-models/balance/records/customer%207%2F%C3%A9?version=2")
    assert answer.json()["version"] == 2
    assert nodes.wrong() == [], "readers still get the live version"

    _set_stages(registry, {1: Stage.PREVIOUS, 2: Stage.LIVE})
    nodes.expected.clear()
    nodes.expected.update(new)
    nodes.wait_until_exact()
    assert nodes.balance(nodes.ports[0], "customer 7/é").headers["Foldlake-Version"] == "2"

    _set_stages(registry, {1: Stage.RETIRED})
    old_stores = [nodes.store(node, 1) for node in ("node-1", "node-2")]
    wait_until(
        lambda: not any(store.exists() for store in old_stores), "the retired version's stores are gone"
    )
    assert nodes.wrong() == []
    wait_until(lambda: not _still_open(nodes, "balance.v1"), "their disk space is released")


def _still_open(nodes: NodeStack, store: str) -> list[str]:
    """Return the HTTP workers' memory maps of a store, including a removed one."""
    found = []
    for node in ("node-1", "node-2"):
        workers = psutil.Process(nodes.pid(f"{node}-http")).children(recursive=True)
        maps = "".join(Path(f"/proc/{worker.pid}/maps").read_text() for worker in workers)
        found += [line for line in maps.splitlines() if f"/{store}" in line]
    return found


def _append(registry: VersionRegistry, version: Version) -> None:
    record = registry.read()["balance"]
    registry.compare_and_set(replace(record, versions=(*record.versions, version)), record.revision)


def _set_stages(registry: VersionRegistry, stages: dict[int, Stage]) -> None:
    record: ReadModelVersions = registry.read()["balance"]
    versions = tuple(replace(v, stage=stages.get(v.number, v.stage)) for v in record.versions)
    registry.compare_and_set(replace(record, versions=versions), record.revision)


def _is_hydrated(nodes: NodeStack, port: int, version: int) -> bool:
    reports = nodes.get(port, "/api/partitions").json()
    of_version = [report for report in reports if report["version"] == version]
    return bool(of_version) and all(report["isReady"] and report["lagRecords"] == 0 for report in of_version)
