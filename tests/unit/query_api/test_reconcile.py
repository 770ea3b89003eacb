"""What a node tells its workers and what it follows, from what it knows of the cluster."""

from dataclasses import dataclass

from include.versions import Stage, Version, first_version
from query_api.cluster_observer import ClusterView, TopicFacts
from query_api.group_members import RoutingTable
from query_api.node_state import HeldPartition, HeldVersion, ModelState, NodeState
from query_api.reconcile import build_state, followed, wanted_partitions
from query_api.store.base import Binding

ME, OTHER = "http://me", "http://other"
BEFORE = NodeState(node="me", url=ME)
TOPICS = {
    "balance": TopicFacts(Binding("c", "balance", "s"), 4),
    "balance.v1.changelog": TopicFacts(Binding("c", "balance.v1.changelog", "t"), 4),
}
OWNERS = {("balance", p): ME if p < 2 else OTHER for p in range(4)}
VIEW = ClusterView(
    versions={"balance": first_version("balance", 1)},
    topics=TOPICS,
    routing=RoutingTable(OWNERS, {ME: "me", OTHER: "other"}),
    source_ends={("balance", p): 10 for p in range(4)},
)


@dataclass
class Following:
    """A followed version that holds what it is told."""

    held: dict[int, HeldPartition] | None
    records: int = 3
    bad_records: int = 1

    def partitions(self) -> dict[int, HeldPartition] | None:
        """Return what is held."""
        return self.held


def state_of(
    view: ClusterView | None = VIEW,
    owned: frozenset[tuple[str, int]] | None = None,
    before: NodeState = BEFORE,
    following: Following | None = None,
) -> NodeState:
    versions = {} if following is None else {("balance", 1): following}
    return build_state(before, view, {"balance": "balance"}, owned, versions, 1)


def test_only_versions_with_a_changelog_are_followed() -> None:
    assert [(r.number, r.partition_count) for r in followed(VIEW)] == [(1, 4)]
    assert followed(ClusterView(versions=VIEW.versions)) == []


def test_retired_version_is_not_followed() -> None:
    record = first_version("balance", 1)
    retired = Version(1, Stage.RETIRED, 1, "balance.v1.changelog", "", "")
    versions = {"balance": type(record)("balance", 2, (retired,), "")}

    assert followed(ClusterView(versions=versions, topics=TOPICS)) == []


def test_routing_table_counts_until_there_is_an_own_assignment() -> None:
    assert state_of().models["balance"].owned == {0, 1}


def test_own_assignment_counts_more_than_the_table() -> None:
    model = state_of(owned=frozenset({("balance", 1), ("balance", 2)})).models["balance"]

    assert model.owned == {1, 2}
    assert model.owners == {1: ME, 2: ME, 3: OTHER}


def test_node_holds_what_it_owns_and_what_it_stands_by_for() -> None:
    assert wanted_partitions(state_of(), "balance", 1) == {0, 1, 2, 3}
    assert wanted_partitions(state_of(), "balance", 2) == frozenset()
    alone = build_state(BEFORE, VIEW, {"balance": "balance"}, None, {}, 0)
    assert wanted_partitions(alone, "balance", 1) == {0, 1}


def test_held_partitions_are_told() -> None:
    held = {0: HeldPartition(is_ready=True, end_offset=9)}

    version = state_of(following=Following(held)).models["balance"].versions[1]

    assert version == HeldVersion(1, "live", "balance.v1.changelog", held, bad_records=1, records=3)


def test_while_the_store_is_opened_the_state_before_stays_in_force() -> None:
    held = {0: HeldPartition(is_ready=True, end_offset=9)}
    version = HeldVersion(1, "live", "balance.v1.changelog", held)
    before = NodeState("me", ME, models={"balance": ModelState("balance", "balance", 4, 1, 1, {1: version})})

    assert state_of(view=None, before=before) == before
    opening = state_of(before=before, following=Following(None))
    assert opening.models["balance"].versions[1].partitions == held
