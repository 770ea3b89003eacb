"""The published state round-trips through its file; a broken file is ignored."""

from pathlib import Path

from query_api.cluster import node_state
from query_api.cluster.node_state import ModelState, NodeState, NodeStateWatch, PartitionState, VersionState

STATE = NodeState(
    node="node-1",
    url="http://127.0.0.1:5051",
    written_at=12.5,
    nodes={"http://127.0.0.1:5051": "node-1"},
    models={
        "balance": ModelState(
            "balance",
            "balance",
            4,
            2,
            1,
            {1: VersionState(1, "live", "t", {3: PartitionState(is_ready=True, end_offset=5)})},
            frozenset({3}),
            {3: "http://127.0.0.1:5051"},
            {3: ("http://127.0.0.1:5052",)},
            {3: 9},
        )
    },
)


def test_state_round_trips(tmp_path: Path) -> None:
    node_state.write(tmp_path, STATE)

    assert node_state.read(tmp_path) == STATE


def test_broken_file_is_ignored(tmp_path: Path) -> None:
    assert node_state.read(tmp_path) is None
    (tmp_path / node_state.FILE_NAME).write_text('{"node": 1')

    assert node_state.read(tmp_path) is None


def test_watch_sees_a_new_state_and_keeps_the_last_good_one(tmp_path: Path) -> None:
    watch = NodeStateWatch(tmp_path, check_s=0)
    assert watch.current() is None

    node_state.write(tmp_path, STATE)
    assert watch.current() == STATE

    (tmp_path / node_state.FILE_NAME).unlink()
    assert watch.current() == STATE
