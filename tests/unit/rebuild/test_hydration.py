"""A candidate is loaded when every node has, with a small lag, every partition that it owns or is a standby for."""

from dataclasses import replace

from include.nodes.partition_report import PartitionReport
from include.rebuild.hydration import Hydration, hydration

A, B = "http://a", "http://b"


def report(by: str, owner: str, version: int = 2, partition: int = 0) -> PartitionReport:
    return PartitionReport(
        read_model="balance",
        version=version,
        stage="live" if version == 1 else "candidate",
        partition=partition,
        owner=owner,
        standbys=(B if owner == A else A,),
        reported_by=by,
        is_held=True,
        is_ready=True,
        changelog_topic=f"balance.v{version}.changelog",
        position=100,
        end=100,
        lag_records=0,
        events_behind=0,
    )


def evaluated(a: list[PartitionReport] | None, b: list[PartitionReport] | None) -> Hydration:
    return hydration({A: a, B: b}, "balance", 2, partitions=1)


def test_loaded_on_owner_and_standby() -> None:
    assert evaluated([report(A, A)], [report(B, A)]) == Hydration(200, 200, ())


def test_standby_that_is_still_loading_is_missing() -> None:
    late = replace(report(B, A), is_ready=False, position=10)
    assert evaluated([report(A, A)], [late]) == Hydration(110, 200, ("http://b partition 0: loading",))


def test_node_that_does_not_respond_is_missing() -> None:
    assert evaluated([report(A, A)], None).missing == ("http://b does not respond",)


def test_node_that_lists_only_the_live_version_is_missing() -> None:
    assert evaluated([report(A, A)], [report(B, A, version=1)]).missing == ("http://b does not list v2 yet",)


def test_candidate_may_lag_as_much_as_the_live_version() -> None:
    live = replace(report(A, A, version=1), events_behind=5_000)
    candidate = replace(report(A, A), events_behind=5_500)
    standby = report(B, A)
    assert evaluated([live, candidate], [standby]).missing == ()
    assert evaluated([candidate], [standby]).missing == ("http://a partition 0: 5,500 events behind the log",)


def test_partition_without_an_owner_and_a_group_without_nodes_are_missing() -> None:
    assert evaluated([report(A, B)], [report(B, "http://c")]).missing == ("an owner of partition 0",)
    assert hydration({}, "balance", 2, 1).missing == ("query nodes (the consumer group has no members)",)
