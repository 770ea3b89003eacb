"""What a node should follow and tell its workers, computed from what it knows: pure functions, no server."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from include.versions.version_record import ReadModelVersions
from query_api.cluster.cluster_observer import ClusterView
from query_api.cluster.node_state import HeldPartition, HeldVersion, ModelState, NodeState
from query_api.lookup.routing import standby_table
from query_api.materializer.version_follower import VersionReference


class FollowedPartitions(Protocol):
    """What is asked of a followed version."""

    records: int

    @property
    def bad_records(self) -> int:
        """Changelog records passed over."""

    def partitions(self) -> dict[int, HeldPartition] | None:
        """Return every partition held; None while the store is being opened."""


def state_before(found: NodeState | None, empty: NodeState, max_age_s: float) -> NodeState:
    """Return what the state that was found on disk is still good for, at the start of a materializer.

    empty: this node's state while it knows nothing.
    max_age_s: beyond it the state's routing stays in force, but nothing counts as held: other nodes have answered
        meanwhile, and what is stored here may be older than what they said.
    """
    if found is None or found.url != empty.url:
        return empty
    return found if found.age_s() <= max_age_s else found.holding_nothing()


def followed(view: ClusterView) -> list[VersionReference]:
    """Return the versions to follow: active ones whose changelog exists."""
    references = []
    for record in view.versions.values():
        for version in record.active:
            facts = view.topics.get(version.changelog_topic)
            if facts is not None:
                references.append(
                    VersionReference(
                        record.read_model,
                        version.number,
                        version.changelog_topic,
                        facts.partitions,
                        facts.binding,
                    )
                )
    return references


def build_state(
    before: NodeState,
    view: ClusterView | None,
    source_topics: Mapping[str, str],
    owned: frozenset[tuple[str, int]] | None,
    versions: Mapping[tuple[str, int], FollowedPartitions],
    standby_replicas: int,
) -> NodeState:
    """Return the state for the HTTP workers.

    before: the state of the process before this one, in force where nothing newer is known.
    owned: this node's own assignment; None before it has one: the routing table's word counts then.
    """
    if view is None:
        return before
    models = {
        name: _model_state(before, view, record, source_topics[name], owned, versions, standby_replicas)
        for name, record in view.versions.items()
    }
    return replace(before, nodes=dict(view.routing.nodes), models=models)


def _model_state(
    before: NodeState,
    view: ClusterView,
    record: ReadModelVersions,
    source_topic: str,
    owned: frozenset[tuple[str, int]] | None,
    versions: Mapping[tuple[str, int], FollowedPartitions],
    standby_replicas: int,
) -> ModelState:
    owners = {p: url for (topic, p), url in view.routing.owners.items() if topic == source_topic}
    if owned is None:
        mine = frozenset(p for p, url in owners.items() if url == before.url)
    else:
        mine = frozenset(p for topic, p in owned if topic == source_topic)
        # Our own assignment is newer than the table: it is told to us first.
        owners = {p: url for p, url in owners.items() if url != before.url} | dict.fromkeys(mine, before.url)
    topic = record.live.changelog_topic if record.live else None
    facts = view.topics.get(topic or source_topic) or view.topics.get(source_topic)
    partition_count = facts.partitions if facts else 0
    nodes = {*view.routing.nodes, before.url}
    return ModelState(
        name=record.read_model,
        source_topic=source_topic,
        partition_count=partition_count,
        revision=record.revision,
        live=record.live.number if record.live else None,
        versions={v.number: _held_version(before, record, v.number, versions) for v in record.active},
        owned=mine,
        owners=owners,
        standbys=standby_table(source_topic, partition_count, owners, nodes, standby_replicas),
        source_ends={p: end for (topic, p), end in view.source_ends.items() if topic == source_topic},
    )


def _held_version(
    before: NodeState,
    record: ReadModelVersions,
    number: int,
    versions: Mapping[tuple[str, int], FollowedPartitions],
) -> HeldVersion:
    version = next(v for v in record.versions if v.number == number)
    held = HeldVersion(number=number, stage=version.stage.value, changelog_topic=version.changelog_topic)
    running = versions.get((record.read_model, number))
    partitions = None if running is None else running.partitions()
    if running is not None and partitions is not None:
        return replace(held, partitions=partitions, bad_records=running.bad_records, records=running.records)
    model_before = before.models.get(record.read_model)
    version_before = None if model_before is None else model_before.versions.get(number)
    return held if version_before is None else replace(held, partitions=version_before.partitions)


def wanted_partitions(state: NodeState, model: str, number: int) -> frozenset[int]:
    """Return the partitions that this node should hold of a version: those it owns and those it stands by for."""
    known = state.models.get(model)
    if known is None or number not in known.versions:
        return frozenset()
    standby = {p for p, urls in known.standbys.items() if state.url in urls}
    return frozenset(known.owned | standby)
