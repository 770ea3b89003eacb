"""Records the history of the live versions: takes what the materializer knows every second, and adds a sample every ten."""

import logging
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from include.nodes.partition_report import PartitionReport
from query_api.cluster.node_state import ModelState, NodeState, VersionState
from query_api.history.latencies import Arrival, RecordLocation, RecordTimes, TopicEnds
from query_api.history.samples import (
    INTERVAL_S,
    HistorySample,
    read_history,
    remove_history,
    write_history,
)

# Of records whose time is read in one second, over all read models.
MAX_READINGS = 16

Key = tuple[str, int]

log = logging.getLogger(__name__)


@dataclass
class _Interval:
    """What the current interval of a version has so far. totals: of the events appended and folded at its start, and when that was."""

    latencies_ms: list[int] = field(default_factory=list)
    totals: tuple[int, int, float] | None = None


class HistoryRecorder:
    """One thread calls `run_once` in a loop.

    state: returns what the node publishes. arrivals: returns for a version (read model, number) events that have arrived lately.
    peer_reports: returns what the other nodes report on their partitions; called only if this node does not have all of them.
    record_times: connects to Kafka. pause: waits for about a second, or until the process stops.
    """

    def __init__(
        self,
        store_dir: Path,
        state: Callable[[], NodeState | None],
        arrivals: Callable[[Key], list[Arrival]],
        peer_reports: Callable[[NodeState], list[PartitionReport]],
        record_times: Callable[[], RecordTimes],
        pause: Callable[[], object],
    ) -> None:
        self._store_dir = store_dir
        self._state = state
        self._arrivals = arrivals
        self._peer_reports = peer_reports
        self._open_record_times = record_times
        self._pause = pause
        self._record_times: RecordTimes | None = None
        self._ends = TopicEnds()
        self._intervals: dict[Key, _Interval] = {}
        self._history = read_history(store_dir)
        self._next_sample_s = _next(time.time())
        self._turn = 0

    def run_once(self) -> None:
        """Take what is known now, and add the samples of an interval that has ended. Never fails: plots are not worth a node."""
        try:
            self._run_once()
        except Exception:
            log.exception("cannot record the history of the last hour")
        self._pause()

    def _run_once(self) -> None:
        self._turn += 1
        state = self._state()
        now_s = time.time()
        live = dict(_live_versions(state))
        self._intervals = {key: self._intervals.get(key, _Interval()) for key in live}
        for model, version in live.values():
            self._ends.observe(version.source_topic or model.source_topic, version.source_ends, now_s)
        self._note_latencies(live)
        # After a pause of the machine, or a clock that was set: the next whole interval.
        if now_s < self._next_sample_s <= now_s + INTERVAL_S:
            return
        self._next_sample_s = _next(now_s)
        if state is not None:
            self._add_samples(state, live, now_s)

    def close(self, *, keep_history: bool = False) -> None:
        """Close the connection to Kafka, and remove the file, unless another process continues it."""
        if self._record_times is not None:
            self._record_times.close()
        if not keep_history:
            remove_history(self._store_dir)

    def _note_latencies(self, live: Mapping[Key, tuple[ModelState, VersionState]]) -> None:
        wanted: dict[RecordLocation, tuple[Key, Arrival]] = {}
        for key, (model, version) in live.items():
            topic = version.source_topic or model.source_topic
            arrivals = self._arrivals(key)
            if arrivals:
                # One of them, of each partition in turn.
                arrival = arrivals[self._turn % len(arrivals)]
                wanted[topic, arrival.position.partition, arrival.position.offset] = (key, arrival)
        # Of one partition, only one record can be read at a time.
        locations = {location[:2]: location for location in wanted}
        asked = list(locations.values())[:MAX_READINGS]
        if not asked:
            return
        self._record_times = self._record_times or self._open_record_times()
        for location, appended_s in self._record_times.of(asked).items():
            key, arrival = wanted[location]
            if self._ends.is_plausible(location, appended_s):
                latency_ms = max(0, round((arrival.at_s - appended_s) * 1000))
                self._intervals[key].latencies_ms.append(latency_ms)

    def _add_samples(
        self, state: NodeState, live: Mapping[Key, tuple[ModelState, VersionState]], now_s: float
    ) -> None:
        folded = {key: _folded(model, version) for key, (model, version) in live.items()}
        if any(None in offsets.values() for offsets in folded.values()):
            _complete(folded, self._peer_reports(state))
        for key, (_, version) in live.items():
            self._history.add(key[0], self._sample(key, version, folded[key], now_s))
        self._history.expire(now_s)
        try:
            write_history(self._store_dir, self._history)
        except OSError as error:
            log.warning("cannot publish the history of the last hour: %s", error)

    def _sample(
        self, key: Key, version: VersionState, folded: Mapping[int, int | None], now_s: float
    ) -> HistorySample:
        before = self._intervals[key]
        latencies = before.latencies_ms
        known = [offset for offset in folded.values() if offset is not None]
        totals = None
        behind = appended_per_s = folded_per_s = None
        if folded and len(known) == len(folded) and version.source_ends.keys() >= folded.keys():
            ends = {p: max(version.source_ends[p], offset or 0) for p, offset in folded.items()}
            totals = (sum(ends.values()), sum(known), now_s)
            behind = totals[0] - totals[1]
            if before.totals is not None and now_s > before.totals[2]:
                elapsed_s = now_s - before.totals[2]
                appended_per_s = round(max(0, totals[0] - before.totals[0]) / elapsed_s, 1)
                folded_per_s = round(max(0, totals[1] - before.totals[1]) / elapsed_s, 1)
        self._intervals[key] = _Interval(totals=totals)
        return HistorySample(
            at=int(now_s),
            events_behind=behind,
            appended_per_s=appended_per_s,
            folded_per_s=folded_per_s,
            latency_ms=round(statistics.median(latencies)) if latencies else None,
            latency_max_ms=max(latencies, default=None),
        )


def _next(now_s: float) -> float:
    """Return the next multiple of the interval, so that the samples of all nodes are of the same times."""
    return (now_s // INTERVAL_S + 1) * INTERVAL_S


def _live_versions(state: NodeState | None) -> Iterable[tuple[Key, tuple[ModelState, VersionState]]]:
    for model in () if state is None else state.models.values():
        if model.live is not None and model.live in model.versions:
            yield (model.name, model.live), (model, model.versions[model.live])


def _folded(model: ModelState, version: VersionState) -> dict[int, int | None]:
    """Return the offset after the newest folded event of each partition; None where this node does not know it."""
    found: dict[int, int | None] = {}
    for partition in range(model.partition_count):
        held = version.partitions.get(partition)
        is_known = held is not None and held.is_ready
        start = version.source_starts.get(partition, 0)
        found[partition] = max(held.folded, start) if held is not None and is_known else None
    return found


def _complete(folded: Mapping[Key, dict[int, int | None]], reports: Iterable[PartitionReport]) -> None:
    """Fill in what the other nodes know."""
    for report in reports:
        offsets = folded.get((report.read_model, report.version), {})
        if offsets.get(report.partition, 0) is None and report.is_ready and report.events_behind is not None:
            offsets[report.partition] = (report.source_end or 0) - report.events_behind
