"""Every ten seconds, the recorder adds a sample of each live version, from what the node and the others know."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from include.nodes.partition_report import PartitionReport
from include.position import Position
from query_api.cluster.node_state import ModelState, NodeState, PartitionState, VersionState
from query_api.history.latencies import Arrival, RecordLocation, RecordTimes
from query_api.history.recorder import HistoryRecorder
from query_api.history.samples import INTERVAL_S, read_columns

START_S = 1_790_000_001.0


class Cluster:
    """What a recorder is told: a node's state, events that have arrived, and the times of records."""

    def __init__(self, store_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = START_S
        monkeypatch.setattr(time, "time", lambda: self.now_s)
        self.store_dir = store_dir
        self.version = VersionState(
            1,
            "live",
            "balance.v1.changelog",
            {0: PartitionState(is_ready=True, folded=90), 1: PartitionState(is_ready=True, folded=50)},
            source_topic="balance",
            source_ends={0: 100, 1: 50},
        )
        self.arrivals: list[Arrival] = []
        self.times: dict[RecordLocation, float] = {}
        self.reports: list[PartitionReport] = []
        self.recorder = HistoryRecorder(
            store_dir,
            self.state,
            self.taken,
            lambda _state: self.reports,
            lambda: cast("RecordTimes", self),
            lambda: None,
        )

    def state(self) -> NodeState:
        """Return the state that the node publishes."""
        model = ModelState("balance", "balance", 2, 1, 1, {1: self.version})
        return NodeState("node-1", "http://node-1:5051", models={"balance": model})

    def taken(self, key: tuple[str, int]) -> list[Arrival]:
        """Return the arrivals, each once."""
        assert key == ("balance", 1)
        taken, self.arrivals = self.arrivals, []
        return taken

    def of(self, places: Iterable[RecordLocation]) -> dict[RecordLocation, float]:
        """Return the times of records."""
        return {place: self.times[place] for place in places if place in self.times}

    def close(self) -> None:
        """Nothing is open."""

    def arrive(self, offset: int, *, appended_s: float) -> None:
        """Note an event that arrives now."""
        self.arrivals.append(Arrival(Position(0, offset), self.now_s))
        self.times["balance", 0, offset] = appended_s

    def second(self, seconds: float = 1.0) -> None:
        """Let time pass, and have the recorder run."""
        self.now_s += seconds
        self.recorder.run_once()

    def samples(self) -> dict[str, list[object]]:
        """Return the published samples, by field."""
        found: dict[str, list[object]] = read_columns(self.store_dir).get("balance", {})
        return found


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    running = Cluster(tmp_path, monkeypatch)
    yield running
    running.recorder.close()


def test_a_sample_has_the_lag_and_the_rates_of_its_interval(cluster: Cluster) -> None:
    cluster.second(INTERVAL_S)
    cluster.version = replace(
        cluster.version,
        partitions={
            0: PartitionState(is_ready=True, folded=120),
            1: PartitionState(is_ready=True, folded=80),
        },
        source_ends={0: 125, 1: 80},
    )
    cluster.second(INTERVAL_S)

    found = cluster.samples()

    assert found["events_behind"] == [10, 5]
    assert found["appended_per_s"] == [None, 5.5]
    assert found["folded_per_s"] == [None, 6.0]
    assert found["latency_ms"] == [None, None]
    assert found["at"] == [int(START_S) + 10, int(START_S) + 20]


def test_the_latency_is_median_and_maximum_of_the_events_that_were_asked_for(cluster: Cluster) -> None:
    for latency_s in (0.010, 0.020, 0.090):
        cluster.arrivals.append(Arrival(Position(0, int(latency_s * 1000)), cluster.now_s))
        cluster.times["balance", 0, int(latency_s * 1000)] = cluster.now_s - latency_s
        cluster.recorder.run_once()
    cluster.second(INTERVAL_S)

    assert (cluster.samples()["latency_ms"], cluster.samples()["latency_max_ms"]) == ([20], [90])


def test_an_event_with_an_invented_time_has_no_latency(cluster: Cluster) -> None:
    cluster.second()
    cluster.arrive(100, appended_s=cluster.now_s - 86_400)
    cluster.second()
    cluster.second(INTERVAL_S)

    assert cluster.samples()["latency_ms"] == [None]


def test_another_node_is_asked_for_a_partition_that_this_one_lacks(cluster: Cluster) -> None:
    cluster.version = replace(cluster.version, partitions={0: PartitionState(is_ready=True, folded=90)})
    cluster.second(INTERVAL_S)
    cluster.reports = [
        PartitionReport(
            "balance",
            1,
            "live",
            1,
            "http://node-2:5052",
            (),
            "http://node-2:5052",
            is_held=True,
            is_ready=True,
            changelog_topic="balance.v1.changelog",
            source_end=50,
            events_behind=7,
        )
    ]
    cluster.second(INTERVAL_S)

    assert cluster.samples()["events_behind"] == [None, 17]


def test_the_next_process_goes_on_with_what_a_killed_one_has_left(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.second(INTERVAL_S)

    following = Cluster(tmp_path, monkeypatch)
    following.now_s = cluster.now_s
    following.second(INTERVAL_S)

    assert following.samples()["at"] == [int(START_S) + 10, int(START_S) + 20]


def test_a_stopped_process_leaves_nothing(cluster: Cluster) -> None:
    cluster.second(INTERVAL_S)
    assert cluster.samples()

    cluster.recorder.close()

    assert cluster.samples() == {}
