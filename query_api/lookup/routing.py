"""Where a key is: its version and partition, the standbys of the partition, and the order in which nodes are tried."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import chain
from typing import NamedTuple
from zlib import crc32

from confluent_kafka import murmur2

from include.nodes.peers import HOP_ANY, HOP_CURRENT, HOP_OWNER
from query_api.cluster.node_state import ModelState, NodeState, PartitionState


class Role(StrEnum):
    """The role in which a node answered."""

    OWNER = "owner"
    STANDBY = "standby"


class KeyLocation(NamedTuple):
    """A key's location: the read model's state on this node, the requested version, and the key's partition.

    A tuple, because every lookup creates one.

    stored: the partition's state on this node; None when the node does not follow it.
    """

    state: NodeState
    model: ModelState
    version: int
    key: bytes
    partition: int
    stored: PartitionState | None

    @property
    def owner(self) -> str | None:
        """URL of the partition's owner; None while it has none."""
        return self.model.owners.get(self.partition)

    @property
    def is_owned_here(self) -> bool:
        """Whether this node owns the key's partition."""
        return self.partition in self.model.owned

    @property
    def is_answered_here(self) -> bool:
        """Whether this node answers by itself, before it asks another one."""
        return self.is_owned_here or (self.model.placement.is_everywhere and self.stored is not None)

    @property
    def role(self) -> Role:
        """The role in which this node answers."""
        return Role.OWNER if self.is_owned_here else Role.STANDBY


# The URL of a node, and the hop rule of a request to it; no rule for this node itself.
Attempt = tuple[str, str | None]


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key, computed like Kafka's Java client: murmur2(key) % partitions."""
    return int(murmur2(key, partitions))


def standbys_of(
    topic: str, partition: int, owner: str | None, nodes: Iterable[str], replicas: int
) -> tuple[str, ...]:
    """Return the URLs of a partition's standbys; equal on all nodes with the same membership.

    Highest random weight: when a node joins or leaves, only the partitions that it is a standby for move.
    Source: Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998.
    """
    others = sorted(node for node in nodes if node != owner)
    ranked = sorted(others, key=lambda node: crc32(f"{topic}/{partition}/{node}".encode()), reverse=True)
    return tuple(ranked[:replicas])


def standby_table(
    topic: str, partitions: int, owners: Mapping[int, str], nodes: Iterable[str], replicas: int
) -> dict[int, tuple[str, ...]]:
    """Return the standbys of every partition of a topic."""
    known = sorted(nodes)
    return {p: standbys_of(topic, p, owners.get(p), known, replicas) for p in range(partitions)}


def attempts(location: KeyLocation, *, is_current: bool = True) -> Iterator[Attempt]:
    """Return the nodes to try for a key or a partition, in order.

    A node that answers by itself comes first. Otherwise it is the owner, which nearly always answers; then its standbys, then all other
    nodes, which may still store a partition that they owned until recently.
    is_current: whether this node has confirmed the partition's end recently. If not, a current answer of another node comes before its
        own, and its own before any other (docs/decisions/0029).
    """
    itself = ((location.state.url, None),)
    if not is_current:
        current = ((url, HOP_CURRENT) for url in _in_order(location) if url != location.state.url)
        return chain(current, itself, _with_rules(location))
    if location.is_answered_here:
        # The order of the others is computed only if it is needed: nearly every lookup ends with the first attempt.
        return chain(itself, _with_rules(location))
    return _with_rules(location, with_itself=True)


def _with_rules(location: KeyLocation, *, with_itself: bool = False) -> Iterator[Attempt]:
    for url in _in_order(location):
        if url != location.state.url:
            yield url, HOP_OWNER if url == location.owner else HOP_ANY
        elif with_itself:
            yield url, None


def _in_order(location: KeyLocation) -> Iterator[str]:
    """Yield the URL of each node once: the owner, without sorting the others, then the standbys, then the others."""
    owner = location.owner
    if owner is not None:
        yield owner
    standbys = location.model.standbys.get(location.partition, ())
    # The keys of a dictionary are in order, each once.
    others = dict.fromkeys((*standbys, *sorted({*location.state.nodes, location.state.url})))
    yield from (url for url in others if url != owner)
