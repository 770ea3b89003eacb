"""Detects, from the offsets of each observation of the cluster, folds that have stalled and changelogs that have lost records.

A broker that does not sync its files loses the newest records when the machine fails, and a changelog can be deleted and recreated. A
node that did not forget the offsets that it has answered up to would wait for them to come back.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from include.boot_clock import NEVER, Moment, boot_s
from include.position import Offsets
from include.stream.folded_offsets import STANDSTILL_S, is_stalled
from include.stream.query_reports import QueryReport
from query_api.cluster.cluster_observer import ClusterView
from query_api.lookup.served_offsets import read_served, served_path
from query_api.materializer.version_follower import VersionFollower, VersionReference

# How often Kafka is asked why a version's events wait.
CHECK_INTERVAL_S = 5.0

Key = tuple[str, int]
# Returns for a version (read model, number), its source topic, what is folded of it and the ends beyond that how far the source has been
# read, including what is never folded, and the driver's report on the version's query. May raise KafkaUnavailableError.
Inquiry = Callable[[Key, str, Mapping[int, int], Mapping[int, int]], tuple[Offsets, QueryReport | None]]
log = logging.getLogger(__name__)
Served = Mapping[VersionReference, list[int]]


@dataclass
class _Progress:
    """How far a version's events are folded.

    moved: when an event was last folded, or none waited.
    explained: ends up to which everything that waits was found to need no fold.
    """

    folded: dict[int, int] = field(default_factory=dict)
    explained: Offsets = field(default_factory=Offsets)
    moved: Moment = NEVER
    inquired_at: float = float("-inf")
    is_still: bool = False

    def restart(self, folded: Mapping[int, int]) -> None:
        """Note that the folds keep up at this moment."""
        self.folded, self.is_still = dict(folded), False
        self.moved = Moment.now()


class FoldWatch:
    """Judges a version's folds each time that the cluster has been observed. Not thread-safe."""

    def __init__(
        self,
        inquire: Inquiry,
        real_time_interval_s: float,
        current_s: float,
        source_topics: Mapping[str, str],
    ) -> None:
        """Watch.

        inquire: called only while events wait and none is folded.
        current_s: for how long a partition is current after its end was confirmed.
        source_topics: of each read model.
        """
        self._inquire = inquire
        self._real_time_interval_s = real_time_interval_s
        self._current_s = current_s
        self._source_topics = source_topics
        self._progress: dict[Key, _Progress] = {}

    def standstills(self, followers: Iterable[VersionFollower], view: ClusterView) -> dict[Key, Moment]:
        """Return the live versions of which events wait and none is folded, and since when."""
        found = {}
        for follower in followers:
            model, number = follower.reference.model, follower.reference.number
            record = view.versions.get(model)
            if record is None or record.live is None or record.live.number != number:
                continue
            # A partition that lags behind its changelog says nothing about the folds.
            folded = {
                p: state.folded
                for p, state in (follower.partitions() or {}).items()
                if state.is_ready and state.unconfirmed_s() < self._current_s
            }
            topic = record.live.source_topic or self._source_topics[model]
            since = self.still_since((model, number), topic, folded, view.ends_of(topic))
            if since is not None:
                found[model, number] = since
        return found

    def still_since(
        self, key: Key, source_topic: str, folded: Mapping[int, int], source_ends: Mapping[int, int]
    ) -> Moment | None:
        """Return since when the folds of a version stand still, or None.

        folded: partition -> the offset after its newest folded event, for the partitions that are current on this node.
        """
        progress = self._progress.setdefault(key, _Progress())
        waiting = {p: source_ends[p] for p, offset in folded.items() if offset < source_ends.get(p, 0)}
        if progress.folded != folded or progress.explained.covers(waiting):
            progress.restart(folded)
            return None
        now_s = boot_s()
        waiting_s = now_s - progress.moved.boot_s
        if waiting_s > STANDSTILL_S and now_s - progress.inquired_at >= CHECK_INTERVAL_S:
            progress.inquired_at = now_s
            progress.explained, query = self._inquire(key, source_topic, folded, waiting)
            progress.is_still = is_stalled(waiting_s, query, self._real_time_interval_s)
            if progress.explained.covers(waiting):
                progress.restart(folded)
        return progress.moved if progress.is_still else None


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
