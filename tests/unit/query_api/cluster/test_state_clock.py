"""The ages in a node's state are measured by the machine's clock since its start; a wall clock that is set changes none of them."""

import json
from dataclasses import replace
from pathlib import Path
from zlib import crc32

import pytest

from include import boot_clock
from include.boot_clock import Moment, boot_s
from query_api.cluster import node_state
from query_api.cluster.node_state import ModelState, NodeState, PartitionState, VersionState

HOUR_S, DAY_S = 3600.0, 86_400.0
# On a busy machine; a wrong clock is off by an hour.
LATE_S = 25.0
MOVED_S = [HOUR_S, -HOUR_S, DAY_S, -DAY_S]


def before_the_clock_was_set(moved_s: float, seconds_ago: float) -> Moment:
    """Return the moment some seconds ago; the wall clock was set by `moved_s` since."""
    now = Moment.now()
    return Moment(now.boot_s - seconds_ago, now.unix_s - seconds_ago - moved_s)


def state_of(at: Moment) -> NodeState:
    """Return the state of a node that has confirmed and written everything at a moment, and whose folds stand still since."""
    partition = PartitionState(
        is_ready=True,
        confirmed_at=at.unix_s,
        as_of=at.unix_s,
        confirmed_boot_s=at.boot_s,
        as_of_boot_s=at.boot_s,
    )
    version = VersionState(
        1, "live", "t", {0: partition}, still_since=at.unix_s, still_since_boot_s=at.boot_s
    )
    model = ModelState("m", "source", 1, 1, 1, {1: version}, frozenset({0}), {0: "http://a"})
    return NodeState("a", "http://a", models={"m": model}).written(at)


@pytest.mark.parametrize("moved_s", MOVED_S)
def test_ages_do_not_change_when_the_clock_is_set(moved_s: float) -> None:
    state = state_of(before_the_clock_was_set(moved_s, seconds_ago=4.0))

    version = state.models["m"].versions[1]
    partition = version.partitions[0]
    for age_s in (state.age_s(), version.still_s(), partition.unconfirmed_s(), partition.lag_ms() / 1000):
        assert 3.9 < age_s < LATE_S


@pytest.mark.parametrize("moved_s", MOVED_S)
def test_standstill_counts_from_the_earlier_moment_whatever_the_clock_showed(moved_s: float) -> None:
    (partition,) = state_of(Moment.now()).models["m"].versions[1].partitions.values()

    still = partition.standing_still(before_the_clock_was_set(moved_s, seconds_ago=30.0))

    assert 29_900 < still.lag_ms() < 30_000 + LATE_S * 1000
    assert still.unconfirmed_s() < LATE_S


def test_of_a_state_from_before_the_machine_started_only_the_routing_is_valid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node_state.write(tmp_path, state_of(Moment.now()))
    (tmp_path / "boot_id").write_text("another-boot")
    monkeypatch.setattr(boot_clock, "BOOT_ID", tmp_path / "boot_id")

    found = node_state.read(tmp_path)

    assert found is not None
    assert found.models["m"].versions[1].partitions == {}
    assert found.models["m"].owners == {0: "http://a"}
    assert found.age_s() == pytest.approx(boot_s(), abs=LATE_S), "at least as old as the boot"


def test_state_of_an_earlier_release_is_as_old_as_the_wall_clock_says(tmp_path: Path) -> None:
    at = before_the_clock_was_set(0.0, seconds_ago=4.0)
    fields = json.loads(node_state._ADAPTER.dump_json(state_of(at)))
    del fields["boot_id"], fields["written_boot_s"]
    version = fields["models"]["m"]["versions"]["1"]
    del version["still_since_boot_s"], version["opening"]
    del version["partitions"]["0"]["confirmed_boot_s"], version["partitions"]["0"]["as_of_boot_s"]
    text = json.dumps(fields).encode()
    (tmp_path / node_state.FILE_NAME).write_bytes(b"%08x\n%s\n" % (crc32(text), text))

    found = node_state.read(tmp_path)

    assert found is not None
    partition = found.models["m"].versions[1].partitions[0]
    for age_s in (found.age_s(), partition.unconfirmed_s(), partition.lag_ms() / 1000):
        assert 3.9 < age_s < LATE_S
    assert 3.9 < partition.confirmed.age_s() < LATE_S


def test_state_can_be_read_by_a_release_that_does_not_know_its_fields(tmp_path: Path) -> None:
    text = json.loads(node_state._ADAPTER.dump_json(state_of(Moment.now()))) | {"of_a_later_release": 1}
    content = json.dumps(text).encode()
    (tmp_path / node_state.FILE_NAME).write_bytes(b"%08x\n%s\n" % (crc32(content), content))

    found = node_state.read(tmp_path)

    assert found is not None
    assert replace(found, written_at=0.0) != NodeState("a", "http://a")
