"""Watches whether the folds of the live versions stand still: compares the node's stores with the ends of the source topics."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from include.boot_clock import NEVER, Moment, boot_s
from include.position import Offsets
from include.stream.folded_offsets import STANDSTILL_S, is_stalled
from include.stream.query_reports import QueryReport

# How often Kafka is asked why a version's events wait.
CHECK_INTERVAL_S = 5.0

Key = tuple[str, int]
# Returns for a version (read model, number), its source topic, what is folded of it and the ends beyond that how far the source has been
# read, including what is never folded, and the driver's report on the version's query. May raise KafkaUnavailableError.
Inquiry = Callable[[Key, str, Mapping[int, int], Mapping[int, int]], tuple[Offsets, QueryReport | None]]


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

    def __init__(self, inquire: Inquiry, real_time_interval_s: float) -> None:
        """Watch; `inquire` is called only while events wait and none is folded."""
        self._inquire = inquire
        self._real_time_interval_s = real_time_interval_s
        self._progress: dict[Key, _Progress] = {}

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
