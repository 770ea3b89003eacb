"""A version covers the live one if every node that stores it has every event that the live version's changelog contained."""

from dataclasses import replace

from include.nodes.partition_report import PartitionReport
from include.position import Offsets
from include.rebuild.gate import LivePosition, clip_to, lacking_nodes, live_position, skip_before

A, B, C = "http://a", "http://b", "http://c"
LIVE, CANDIDATE = 1, 2


def report(by: str, version: int, folded: int, position: int = 100, partition: int = 0) -> PartitionReport:
    """Return the report of a partition that A owns and B is a standby for; `folded` is of source partition 3."""
    return PartitionReport(
        read_model="balance",
        version=version,
        stage="live" if version == LIVE else "candidate",
        partition=partition,
        owner=A,
        standbys=(B,),
        reported_by=by,
        is_held=True,
        is_ready=True,
        changelog_topic=f"balance.v{version}.changelog",
        position=position,
        folded=Offsets({3: folded}),
    )


def position(*reports: PartitionReport | None, end: int = 100) -> LivePosition:
    nodes = {r.reported_by: [r] for r in reports if r is not None}
    return live_position({**nodes, C: None}, "balance", LIVE, Offsets.of_ends([end]))


def lacking(*reports: PartitionReport, needed: int) -> tuple[str, ...]:
    live = LivePosition(LIVE, {0: Offsets({3: needed})})
    return lacking_nodes({r.reported_by: [r] for r in reports}, "balance", CANDIDATE, live)


def test_the_live_position_is_that_of_the_node_that_has_folded_most() -> None:
    found = position(report(A, LIVE, folded=41), report(B, LIVE, folded=40, position=99))
    assert found == LivePosition(LIVE, {0: Offsets({3: 41})})


def test_the_live_position_is_unknown_until_a_ready_node_has_read_the_changelog_to_its_end() -> None:
    behind, loading = report(B, LIVE, folded=40, position=99), replace(report(A, LIVE, 41), is_ready=False)
    message = "the position of the live v1 in partition 0: no node has read its changelog up to offset 100"
    assert position(behind).unknown == (message,)
    assert position(behind, loading).unknown == (message,)
    assert position().unknown == (message,)


def test_the_live_position_of_an_empty_changelog_is_the_start() -> None:
    empty = replace(report(A, LIVE, 0), position=None, folded=Offsets())
    assert position(empty, end=0) == LivePosition(LIVE, {0: Offsets()})


def test_a_version_that_has_folded_as_much_on_every_node_lacks_nothing() -> None:
    assert lacking(report(A, CANDIDATE, folded=41), report(B, CANDIDATE, folded=50), needed=41) == ()


def test_a_standby_that_lacks_one_event_is_named() -> None:
    assert lacking(report(A, CANDIDATE, folded=41), report(B, CANDIDATE, folded=40), needed=41) == (
        "http://b partition 0: lacks up to 1 event of v1, the newest at offset 40 of source partition 3",
    )


def test_a_partition_with_records_of_another_source_partition_lacks_its_events() -> None:
    other = replace(report(A, CANDIDATE, 0), folded=Offsets({2: 1_000}))
    (line,) = lacking(other, needed=1_200)
    assert line.startswith("http://a partition 0: lacks up to 1,200 events of v1")


def test_a_node_that_neither_owns_nor_stands_by_for_a_partition_does_not_count() -> None:
    assert lacking(report(C, CANDIDATE, folded=0), needed=41) == ()


def test_events_that_the_source_has_lost_are_not_required() -> None:
    live = LivePosition(1, {0: Offsets({0: 10, 1: 20}), 1: Offsets({1: 5})})

    assert clip_to(live, Offsets({0: 7, 1: 30})) == LivePosition(
        1, {0: Offsets({0: 7, 1: 20}), 1: Offsets({1: 5})}
    )


def test_events_that_a_version_skips_are_not_required_of_it() -> None:
    live = LivePosition(LIVE, {0: Offsets({2: 50, 3: 80})})

    assert skip_before(live, Offsets({2: 50, 3: 79})).by_partition == {0: Offsets({3: 80})}
    assert skip_before(live, Offsets()) == live
