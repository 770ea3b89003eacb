"""Computes the versions and partitions that a node follows, and its state: pure functions, without I/O."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from include.boot_clock import Moment
from include.nodes.routing_table import RoutingTable
from include.settings import Placement
from include.versions.version_record import ReadModelVersions
from query_api.cluster.cluster_observer import ClusterView
from query_api.cluster.node_state import ModelState, NodeState, VersionState
from query_api.lookup.routing import standby_table
from query_api.materializer.version_follower import VersionFollower, VersionReference


def previous_state(found: NodeState | None, empty: NodeState, max_age_s: float) -> NodeState:
    """Return the part of the stored state that is valid when a materializer starts.

    empty: this node's state before the first view of the cluster.
    max_age_s: in an older state only the routing is valid, not the partitions: other nodes have answered since,
        and this node's records may be older than their answers.
    """
    if found is None or found.url != empty.url:
        return empty
    return found if found.age_s() <= max_age_s else found.without_partitions()


def versions_to_follow(view: ClusterView) -> list[VersionReference]:
    """Return the active versions whose changelog exists."""
    references = []
    for record in view.versions.values():
        for version in record.active:
            facts = view.topics.get(version.changelog_topic)
            if facts is not None:
                references.append(
                    VersionReference(record.read_model, version.number, facts.partitions, facts.binding)
                )
    return references


def build_state(
    previous: NodeState,
    view: ClusterView | None,
    source_topics: Mapping[str, str],
    owned: frozenset[tuple[str, int]] | None,
    versions: Mapping[tuple[str, int], VersionFollower],
    standby_replicas: int,
    placements: Mapping[str, Placement] = MappingProxyType({}),
) -> NodeState:
    """Return the state to publish to the HTTP workers.

    previous: the state that the previous process published; used until newer data is available.
    owned: this node's own assignment; None before the first one, when the routing table decides.
    placements: of each read model that is not partitioned, at least.
    """
    if view is None:
        return previous
    if not view.routing.nodes:
        # The group rebalances, as after a restart that took longer than this node's session.
        view = replace(view, routing=_routing(previous))
    models = {}
    for name, record in view.versions.items():
        placement = placements.get(name, Placement.PARTITIONED)
        # Every other node is a standby of a read model that is everywhere.
        replicas = len(view.routing.nodes) + 1 if placement.is_everywhere else standby_replicas
        model = _model_state(previous, view, record, source_topics[name], owned, versions, replicas)
        models[name] = replace(model, placement=placement)
    return replace(previous, nodes=dict(view.routing.nodes), models=models)


def _routing(state: NodeState) -> RoutingTable:
    """Return the routing table from which a state was built."""
    owners = {
        (model.source_topic, partition): url
        for model in state.models.values()
        for partition, url in model.owners.items()
    }
    return RoutingTable(owners, state.nodes)


def _model_state(
    previous: NodeState,
    view: ClusterView,
    record: ReadModelVersions,
    source_topic: str,
    owned: frozenset[tuple[str, int]] | None,
    versions: Mapping[tuple[str, int], VersionFollower],
    standby_replicas: int,
) -> ModelState:
    owners = {p: url for (topic, p), url in view.routing.owners.items() if topic == source_topic}
    if owned is None:
        mine = frozenset(p for p, url in owners.items() if url == previous.url)
    else:
        mine = frozenset(p for topic, p in owned if topic == source_topic)
        # This node receives its own assignment before the routing table shows it.
        owners = {p: url for p, url in owners.items() if url != previous.url} | dict.fromkeys(
            mine, previous.url
        )
    topic = record.live.changelog_topic if record.live else None
    facts = view.topics.get(topic or source_topic) or view.topics.get(source_topic)
    partition_count = facts.partitions if facts else 0
    nodes = {*view.routing.nodes, previous.url}
    return ModelState(
        name=record.read_model,
        source_topic=source_topic,
        partition_count=partition_count,
        revision=record.revision,
        live=record.live.number if record.live else None,
        versions={
            v.number: replace(
                _version_state(previous, record, v.number, versions),
                source_topic=v.source_topic or source_topic,
                source_ends=view.ends_of(v.source_topic or source_topic),
                source_starts=v.starts,
            )
            for v in record.active
        },
        owned=mine,
        owners=owners,
        standbys=standby_table(source_topic, partition_count, owners, nodes, standby_replicas),
    )


def _version_state(
    previous: NodeState,
    record: ReadModelVersions,
    number: int,
    versions: Mapping[tuple[str, int], VersionFollower],
) -> VersionState:
    version = next(v for v in record.versions if v.number == number)
    state = VersionState(number=number, stage=version.stage.value, changelog_topic=version.changelog_topic)
    running = versions.get((record.read_model, number))
    if running is not None:
        state = replace(
            state,
            write_error=running.write_error,
            opening=running.opening,
            copied_records=running.copied_records,
            changelog_id=running.reference.binding.topic_id,
        )
        partitions = running.partitions()
        if partitions is not None:
            return replace(
                state, partitions=partitions, bad_records=running.bad_records, records=running.records
            )
    previous_model = previous.models.get(record.read_model)
    previous_version = None if previous_model is None else previous_model.versions.get(number)
    return state if previous_version is None else replace(state, partitions=previous_version.partitions)


def with_standstill(state: NodeState, still_since: Mapping[tuple[str, int], Moment]) -> NodeState:
    """Return the state with the versions (read model, number) whose folds stand still, and since when: answers are as old as that."""
    models = {}
    for name, model in state.models.items():
        versions = {n: _standing_still(v, still_since.get((name, n))) for n, v in model.versions.items()}
        models[name] = replace(model, versions=versions)
    return replace(state, models=models)


def _standing_still(version: VersionState, since: Moment | None) -> VersionState:
    if since is None:
        return version
    partitions = {number: partition.standing_still(since) for number, partition in version.partitions.items()}
    return replace(version, still_since=since.unix_s, still_since_boot_s=since.boot_s, partitions=partitions)


def target_partitions(state: NodeState, model: str, number: int) -> frozenset[int]:
    """Return the partitions of a version that this node should follow: those that it owns or is a standby for.

    In Redis, only the owner writes a partition. Of a replicated read model, a node follows those too that have no owner yet.
    """
    known = state.models.get(model)
    if known is None or number not in known.versions:
        return frozenset()
    match known.placement:
        case Placement.REPLICATED:
            return frozenset(range(known.partition_count))
        case Placement.REDIS:
            return known.owned
    standby = {p for p, urls in known.standbys.items() if state.url in urls}
    return frozenset(known.owned | standby)
