"""The state that a node publishes and the versions that it follows, computed from its view of the cluster."""

import time
from dataclasses import dataclass, replace
from typing import Any, cast

from include.boot_clock import Moment
from include.nodes.routing_table import RoutingTable
from include.settings import Placement
from include.versions.version_record import Stage, Version, first_version
from query_api.cluster.cluster_observer import ClusterView, TopicFacts
from query_api.cluster.node_state import ModelState, NodeState, PartitionState, VersionState
from query_api.materializer.reconcile import (
    build_state,
    previous_state,
    target_partitions,
    versions_to_follow,
    with_standstill,
)
from query_api.materializer.version_follower import VersionFollower, VersionReference
from query_api.store.base import Binding

ME, OTHER = "http://me", "http://other"
BEFORE = NodeState(node="me", url=ME)
TOPICS = {
    "balance": TopicFacts(Binding("c", "balance", "s"), 4),
    "balance.v1.changelog": TopicFacts(Binding("c", "balance.v1.changelog", "t"), 4),
}
OWNERS = {("balance", p): ME if p < 2 else OTHER for p in range(4)}
REFERENCE = VersionReference("balance", 1, 4, TOPICS["balance.v1.changelog"].binding)
VIEW = ClusterView(
    versions={"balance": first_version("balance", 1)},
    topics=TOPICS,
    routing=RoutingTable(OWNERS, {ME: "me", OTHER: "other"}),
    ends={("balance", p): 10 for p in range(4)} | {("balance.v1.changelog", p): 7 for p in range(4)},
)


@dataclass
class Follower:
    """The status of a version's follower."""

    followed: dict[int, PartitionState] | None
    records: int = 3
    bad_records: int = 1
    copied_records: int = 2
    write_error: str = ""
    opening: str = ""
    reference: VersionReference = REFERENCE

    def partitions(self) -> dict[int, PartitionState] | None:
        """Return the followed partitions."""
        return self.followed


def test_while_the_group_rebalances_a_new_process_knows_the_nodes_of_the_one_before() -> None:
    before = build_state(BEFORE, VIEW, {"balance": "balance"}, None, {}, 1)
    rebalancing = replace(VIEW, routing=RoutingTable())

    state = build_state(before.without_partitions(), rebalancing, {"balance": "balance"}, None, {}, 1)

    assert state.nodes == {ME: "me", OTHER: "other"}
    assert state.models["balance"].owners == {p: OWNERS["balance", p] for p in range(4)}


def state_of(
    view: ClusterView | None = VIEW,
    owned: frozenset[tuple[str, int]] | None = None,
    previous: NodeState = BEFORE,
    follower: Follower | None = None,
) -> NodeState:
    versions = {} if follower is None else {("balance", 1): cast("VersionFollower", follower)}
    return build_state(previous, view, {"balance": "balance"}, owned, versions, 1)


def test_only_versions_with_an_existing_changelog_are_followed() -> None:
    assert [(r.number, r.partition_count) for r in versions_to_follow(VIEW)] == [(1, 4)]
    assert versions_to_follow(ClusterView(versions=VIEW.versions)) == []


def test_retired_version_is_not_followed() -> None:
    record = first_version("balance", 1)
    retired = Version(1, Stage.RETIRED, 1, "balance.v1.changelog", "", "")
    versions = {"balance": type(record)("balance", 2, (retired,), "")}

    assert versions_to_follow(ClusterView(versions=versions, topics=TOPICS)) == []


def test_routing_table_decides_before_the_first_assignment() -> None:
    assert state_of().models["balance"].owned == {0, 1}


def test_own_assignment_overrides_the_routing_table() -> None:
    model = state_of(owned=frozenset({("balance", 1), ("balance", 2)})).models["balance"]

    assert model.owned == {1, 2}
    assert model.owners == {1: ME, 2: ME, 3: OTHER}


def test_node_follows_owned_and_standby_partitions() -> None:
    assert target_partitions(state_of(), "balance", 1) == {0, 1, 2, 3}
    assert target_partitions(state_of(), "balance", 2) == frozenset()
    alone = build_state(BEFORE, VIEW, {"balance": "balance"}, None, {}, 0)
    assert target_partitions(alone, "balance", 1) == {0, 1}


def placed(placement: Placement) -> NodeState:
    own = frozenset({("balance", 0)})
    return build_state(BEFORE, VIEW, {"balance": "balance"}, own, {}, 0, {"balance": placement})


def test_every_node_is_a_standby_of_a_read_model_that_is_everywhere_and_follows_what_it_writes() -> None:
    replicated, in_redis = placed(Placement.REPLICATED), placed(Placement.REDIS)

    assert target_partitions(replicated, "balance", 1) == {0, 1, 2, 3}
    assert target_partitions(in_redis, "balance", 1) == {0}
    for state in (replicated, in_redis):
        assert {p: set(urls) for p, urls in state.models["balance"].standbys.items()} == {
            0: {OTHER},
            1: {ME, OTHER},
            2: {ME},
            3: {ME},
        }


def test_followed_partitions_are_in_the_state() -> None:
    held = {0: PartitionState(is_ready=True, end_offset=9)}

    version = state_of(follower=Follower(held)).models["balance"].versions[1]

    assert version == VersionState(
        1,
        "live",
        "balance.v1.changelog",
        held,
        bad_records=1,
        copied_records=2,
        records=3,
        source_topic="balance",
        source_ends=dict.fromkeys(range(4), 10),
        changelog_id=REFERENCE.binding.topic_id,
    )


def test_ends_of_the_source_are_in_the_state() -> None:
    assert state_of().models["balance"].versions[1].source_ends == dict.fromkeys(range(4), 10)


def test_answers_are_as_old_as_the_standstill_of_their_folds() -> None:
    held = {
        p: PartitionState(
            is_ready=True, confirmed_at=unix_s, as_of=unix_s, confirmed_boot_s=boot_s, as_of_boot_s=boot_s
        )
        for p, boot_s, unix_s in ((0, 100.0, 3.0), (1, 50.0, 2.0))
    }
    state = state_of(follower=Follower(held))

    version = with_standstill(state, {("balance", 1): Moment(80.0, 9.0)}).models["balance"].versions[1]

    assert (version.still_since, version.still_since_boot_s) == (9.0, 80.0)
    assert {p: (s.as_of_boot_s, s.as_of) for p, s in version.partitions.items()} == {
        0: (80.0, 9.0),
        1: (50.0, 2.0),
    }
    assert {p: s.confirmed_boot_s for p, s in version.partitions.items()} == {0: 100.0, 1: 50.0}
    assert with_standstill(state, {("balance", 2): Moment(80.0, 9.0)}) == state


def test_store_that_cannot_be_written_is_in_the_state_while_it_is_opened_too() -> None:
    before = state_with({0: PartitionState(is_ready=True)})

    opening = state_of(previous=before, follower=Follower(None, write_error="full", opening="checked"))

    version = opening.models["balance"].versions[1]
    assert (version.write_error, version.opening) == ("full", "checked")
    assert version.partitions == {0: PartitionState(is_ready=True)}


def state_with(held: dict[int, PartitionState], **fields: Any) -> NodeState:  # noqa: ANN401 - a state's own fields
    version = VersionState(1, "live", "balance.v1.changelog", held)
    models = {"balance": ModelState("balance", "balance", 4, 1, 1, {1: version}, owners={0: ME, 1: OTHER})}
    return NodeState("me", ME, models=models, **fields)


def test_recent_state_is_reused_and_of_an_older_one_only_the_routing() -> None:
    held = {0: PartitionState(is_ready=True, end_offset=9)}
    recent = state_with(held, written_at=time.time() - 2)
    old = replace(recent, written_at=time.time() - 8)

    assert previous_state(recent, BEFORE, max_age_s=5) == recent
    assert previous_state(old, BEFORE, max_age_s=5) == state_with({}, written_at=old.written_at)


def test_state_of_another_node_is_not_reused() -> None:
    elsewhere = NodeState("me", OTHER, written_at=time.time())

    assert previous_state(elsewhere, BEFORE, max_age_s=5) == BEFORE
    assert previous_state(None, BEFORE, max_age_s=5) == BEFORE


def test_previous_state_is_used_while_the_store_is_opened() -> None:
    held = {0: PartitionState(is_ready=True, end_offset=9)}
    before = state_with(held)

    assert state_of(view=None, previous=before) == before
    opening = state_of(previous=before, follower=Follower(None))
    assert opening.models["balance"].versions[1].partitions == held
    from_nothing = state_of(previous=before.without_partitions(("balance", 1)), follower=Follower(None))
    assert from_nothing.models["balance"].versions[1].partitions == {}
    assert before.without_partitions(("balance", 2)) == before
