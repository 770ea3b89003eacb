"""A node as its HTTP workers see it: its settings, its state, the other nodes, and whether it should receive requests.

The verdict is behind `/readyz`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from include.declarations.catalog import Catalog
from include.errors import KafkaUnavailableError
from include.settings import NodeSettings, Placement, Settings
from query_api.cluster.node_state import ModelState, NodeState
from query_api.lookup.lookups import Lookups


@dataclass(frozen=True)
class NodeView:
    """One node, as its HTTP workers see it. catalog: of the enabled declarations."""

    settings: Settings
    lookups: Lookups
    catalog: Catalog

    def state(self) -> NodeState | None:
        """Return the latest state from the materializer; None before the first one."""
        return self.lookups.local.state()

    def require_kafka(self) -> None:
        """Raise KafkaUnavailableError at once while the materializer does not reach Kafka: a client would wait for long."""
        state = self.state()
        if state is None:
            raise KafkaUnavailableError("The materializer has not started yet.")
        if not state.is_kafka_reachable:
            raise KafkaUnavailableError(state.waiting_for or "Kafka does not answer.")


@dataclass(frozen=True)
class Readiness:
    """The verdict on a node.

    not_ready: why the node should not receive requests. degraded: why its answers can be older than usual, on this node only
    or on all nodes. Both empty: the node is ready.
    """

    not_ready: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()


def readiness(state: NodeState | None, node: NodeSettings) -> Readiness:
    """Return the verdict on the node whose materializer has published `state`."""
    if state is None:
        return Readiness(("The materializer has not started yet.",))
    not_ready: list[str] = []
    degraded: list[str] = []
    if state.age_s() > node.session_timeout_s:
        not_ready.append(f"The materializer has not updated its state for {state.age_s():.0f} s.")
    if state.keys_missing:
        not_ready.append(state.keys_missing)
    if not state.models:
        not_ready.append(state.waiting_for or "The version registry has no read model yet.")
    for model in state.models.values():
        not_ready += _unserved(model)
        if model.live is not None:
            not_ready += _outdated(state, model, model.live, node.max_age_s)
            degraded += _degraded(state, model, model.live, node.session_timeout_s)
    return Readiness(tuple(not_ready), tuple(degraded))


def _unserved(model: ModelState) -> Iterator[str]:
    if model.live is None:
        yield f"{model.name} has no live version."
        return
    if not model.owners:
        yield f"No partition of {model.source_topic} has an owner yet."
    live = model.versions[model.live]
    if model.placement is Placement.REDIS and live.write_error:
        # Without the server, a node has no records of the read model at all.
        yield live.write_error
    stored = live.partitions
    waiting = sorted(p for p in model.owned if p not in stored or not stored[p].is_ready)
    if waiting:
        reason = live.opening or f"partitions {waiting} are still being read"
        yield f"{model.name} v{model.live}: {reason}."


def _outdated(state: NodeState, model: ModelState, live: int, limit_s: float) -> Iterator[str]:
    """Yield a reason if the end of a partition on this node was not confirmed within `limit_s` seconds."""
    unconfirmed = {p: age_s for p, age_s in _unconfirmed_s(model, live).items() if age_s > limit_s}
    if unconfirmed:
        why = f" {state.waiting_for}" if state.waiting_for else ""
        yield (
            f"{model.name} v{live}: the end of partitions {sorted(unconfirmed)} was last confirmed "
            f"{max(unconfirmed.values()):.0f} s ago; the limit is {limit_s:g} s (FOLDLAKE_NODE_MAX_AGE_S).{why}"
        )


def _degraded(state: NodeState, model: ModelState, live: int, limit_s: float) -> Iterator[str]:
    yield from _outdated(state, model, live, limit_s)
    if model.versions[live].write_error:
        yield model.versions[live].write_error
    if model.versions[live].still_since is not None:
        yield (
            f"{model.name} v{live}: {model.versions[live].source_topic} has events that are not folded, and none was folded for "
            f"{model.versions[live].still_s():.0f} s. Check the stream: ./foldlake status."
        )


def _unconfirmed_s(model: ModelState, live: int) -> dict[int, float]:
    """Return for each partition that is ready on this node the seconds since its end was last confirmed."""
    stored = model.versions[live].partitions
    return {p: partition.unconfirmed_s() for p, partition in stored.items() if partition.is_ready}
