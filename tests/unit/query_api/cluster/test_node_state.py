"""The published state round-trips through its file; a broken file is ignored."""

from dataclasses import replace
from pathlib import Path

import pytest

from query_api import shared_file
from query_api.cluster import node_state
from query_api.cluster.node_state import ModelState, NodeState, PartitionState, VersionState, watch_state
from tests.support.faults.small_disk import small_disk

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
        )
    },
)


def test_state_round_trips(tmp_path: Path) -> None:
    node_state.write(tmp_path, STATE)

    assert node_state.read(tmp_path) == STATE


def test_broken_file_is_ignored(tmp_path: Path) -> None:
    assert node_state.read(tmp_path) is None
    node_state.write(tmp_path, STATE)
    path = tmp_path / node_state.FILE_NAME
    good = path.read_bytes()
    for broken in (b"", b'{"node": 1', good[:50], good.replace(b"node-1", b"node-2", 1)):
        path.write_bytes(broken)
        assert node_state.read(tmp_path) is None


def test_heartbeat_needs_no_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_file, "CHECK_S", 0.0)
    with small_disk(tmp_path / "disk", size_mb=1) as disk:
        node_state.write(disk.path, STATE)
        watch = watch_state(disk.path)
        assert watch.current() == STATE
        disk.fill()
        longer = replace(STATE, written_at=STATE.written_at + 1, waiting_for="space" * 100)

        node_state.write(disk.path, longer)

        assert watch.current() == longer


def test_watch_sees_a_new_state_and_keeps_the_last_good_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_file, "CHECK_S", 0.0)
    watch = watch_state(tmp_path)
    assert watch.current() is None

    node_state.write(tmp_path, STATE)
    assert watch.current() == STATE

    (tmp_path / node_state.FILE_NAME).unlink()
    assert watch.current() == STATE
