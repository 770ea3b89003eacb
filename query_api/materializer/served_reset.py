"""Forgets up to which offsets a node has answered from a changelog that has lost them: otherwise it would wait for them to come back.

A broker that does not sync its files loses the newest records when the machine fails, and a changelog can be deleted and recreated.
"""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from query_api.cluster.cluster_observer import ClusterView
from query_api.lookup.served_offsets import read_served, served_path
from query_api.materializer.version_follower import VersionReference

log = logging.getLogger(__name__)

Served = Mapping[VersionReference, list[int]]


def read_all_served(store_dir: Path, references: Iterable[VersionReference]) -> Served:
    """Return version -> the offset of each partition up to which the node has answered. To be read before the changelogs' ends."""
    return {r: read_served(served_path(store_dir, r.model, r.number), r.partition_count) for r in references}


def forget_lost(store_dir: Path, served: Served, view: ClusterView) -> None:
    """Forget the offsets of the versions whose changelog ends below them."""
    for reference, offsets in served.items():
        ends = view.ends_of(reference.changelog_topic)
        lost = {p: offset for p, offset in enumerate(offsets) if p in ends and offset > ends[p]}
        if lost:
            log.warning(
                "%s has lost records that this node has answered with: it answered up to %s, the ends are %s now",
                reference.changelog_topic,
                lost,
                {partition: ends[partition] for partition in lost},
            )
            served_path(store_dir, reference.model, reference.number).unlink(missing_ok=True)
