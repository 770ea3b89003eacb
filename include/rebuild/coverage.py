"""How far the live version's events reach, and which nodes lack some of them in another version. Pure data."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from include.nodes.partition_report import PartitionReport
from include.position import Offsets

# The reports of each node by its URL; None for a node that does not respond.
Reports = Mapping[str, list[PartitionReport] | None]


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
    """Return the position without the source partitions of which it reaches only events before these: another version skips them."""
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
    return f"lacks up to {lacking:,} events of v{live}, the newest at offset {needed.of(source) - 1:,} of source partition {source}"
