"""The report of every partition: the node's own view, merged with the reports of other nodes."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from include.nodes.partition_report import PartitionReport, reports_of
from include.nodes.peers import PeerDownError, Peers
from query_api.cluster.node_state import ModelState, NodeState
from query_api.lookup.local_lookup import LocalLookup
from query_api.store.base import ChangelogPosition


def local_reports(local: LocalLookup) -> list[PartitionReport]:
    """Return this node's view of every partition of every active version."""
    state = local.state()
    if state is None:
        return []
    reports = []
    for model in state.models.values():
        for number in sorted(model.versions):
            positions = local.positions(model, number)
            reports += [
                _report(state, model, number, p, positions.get(p)) for p in range(model.partition_count)
            ]
    return reports


def _report(
    state: NodeState, model: ModelState, number: int, partition: int, position: ChangelogPosition | None
) -> PartitionReport:
    version = model.versions[number]
    held = version.partitions.get(partition)
    report = PartitionReport(
        read_model=model.name,
        version=number,
        stage=version.stage,
        partition=partition,
        owner=model.owners.get(partition),
        standbys=model.standbys.get(partition, ()),
        reported_by=state.url,
        is_held=held is not None,
        is_ready=held is not None and held.is_ready,
        changelog_topic=version.changelog_topic,
        changelog_id=version.changelog_id,
        source_topic=version.source_topic,
        source_end=version.source_ends.get(partition),
        placement=model.placement,
    )
    if held is None or position is None:
        return report
    # The end offset is fetched less often than the position advances.
    end = max(held.end_offset, position.next_offset)
    read = position.folded.merge(version.source_starts)
    source_end = None if report.source_end is None else max(report.source_end, read.of(partition))
    return replace(
        report,
        position=position.next_offset,
        end=end,
        lag_records=end - position.next_offset,
        folded=position.folded,
        source_end=source_end,
        events_behind=None if source_end is None else read.events_until({partition: source_end}),
    )


def peer_reports(peers: Peers, state: NodeState) -> list[PartitionReport]:
    """Return the other nodes' reports of their partitions; omits nodes that do not answer."""
    reports: list[PartitionReport] = []
    for url in sorted(state.nodes):
        peer = peers.at(url)
        if url != state.url and not peer.is_down:
            with suppress(PeerDownError):
                reports += reports_of(peer)
    return reports


def merged(own: Iterable[PartitionReport], others: Iterable[PartitionReport]) -> list[PartitionReport]:
    """Return one report per partition: its owner's if the owner has answered, else that of another node that stores it."""
    best = {_location(report): report for report in own}
    for report in others:
        location = _location(report)
        if location in best and _rank(report) > _rank(best[location]):
            # Ownership as seen by this node, so that the whole answer is consistent.
            best[location] = replace(report, owner=best[location].owner, standbys=best[location].standbys)
    return list(best.values())


def _location(report: PartitionReport) -> tuple[str, int, int]:
    return report.read_model, report.version, report.partition


def _rank(report: PartitionReport) -> tuple[bool, bool, bool]:
    return report.is_held and report.reported_by == report.owner, report.is_held, report.is_ready
