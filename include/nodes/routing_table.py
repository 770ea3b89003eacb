"""The routing table: the members of the query nodes' consumer group and the partitions assigned to each, as reported by Kafka.

It uses librdkafka's older request. The newer one, `describe_consumer_groups`, sometimes aborts the whole process when the
group's coordinator goes away during the request (librdkafka issue 4605, open).
"""

import logging
import struct
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, GroupMember, GroupMetadata  # type: ignore[attr-defined]  # not in its __all__

from include.nodes.node_url import PeerRule

# The consumer group of all query nodes on this Kafka; each member's client.id is the URL of its node.
GROUP = "foldlake-query-nodes"
# The broker composes a static member's id of its group.instance.id, a dash and a UUID.
UUID_CHARACTERS = 36
# The group's state in which every member has its assignment. During a rebalance, members have none.
STABLE = "Stable"
# Refused members are logged once each, up to this many.
LOGGED_REFUSALS = 256

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RoutingTable:
    """owners: (topic, partition) -> URL of the node that owns it. nodes: URL -> name of every node in the group."""

    owners: Mapping[tuple[str, int], str] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)


def routing_table(admin: AdminClient, timeout_s: float, peers: PeerRule) -> RoutingTable | None:
    """Return the query nodes' routing table, or None while their group rebalances; raises KafkaException.

    It omits members whose URL `peers` refuses: their partitions have no owner, and other nodes answer for them.
    """
    described = _described(admin, timeout_s)
    if described is None or described.state != STABLE:
        return None
    if described.error is not None:
        raise KafkaException(described.error)
    owners: dict[tuple[str, int], str] = {}
    nodes: dict[str, str] = {}
    for member in described.members:
        refusal = peers.refusal(member.client_id)
        if refusal is not None:
            _log_refusal(member.client_id, refusal)
            continue
        nodes[member.client_id] = _node_name(member) or member.client_id
        owners |= dict.fromkeys(parse_assignment(member.assignment), member.client_id)
    return RoutingTable(owners, nodes)


def member_url(admin: AdminClient, timeout_s: float, name: str) -> str | None:
    """Return the URL of the member with this node's name, also during a rebalance; None: there is none. Raises KafkaException."""
    described = _described(admin, timeout_s)
    members = described.members if described is not None else []
    return next((str(member.client_id) for member in members if _node_name(member) == name), None)


def _described(admin: AdminClient, timeout_s: float) -> GroupMetadata | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = admin.list_groups(GROUP, timeout=timeout_s)
    return next((group for group in found if group.id == GROUP), None)


def _node_name(member: GroupMember) -> str:
    return str(member.id)[: -UUID_CHARACTERS - 1]


@lru_cache(maxsize=LOGGED_REFUSALS)
def _log_refusal(url: str, reason: str) -> None:
    log.warning("a member of %s gets no requests, its URL %r is refused: %s", GROUP, url, reason)


def parse_assignment(assignment: bytes) -> list[tuple[str, int]]:
    """Return the (topic, partition) pairs of a member's assignment.

    Source: Kafka's ConsumerProtocolAssignment.json: version, then an array of topic and array of partitions; the
    rest belongs to the assignor.
    """
    if not assignment:
        return []
    position = 2
    (topics,) = struct.unpack_from(">i", assignment, position)
    position += 4
    pairs: list[tuple[str, int]] = []
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", assignment, position)
        topic = assignment[position + 2 : position + 2 + length].decode()
        position += 2 + length
        (count,) = struct.unpack_from(">i", assignment, position)
        partitions = struct.unpack_from(f">{count}i", assignment, position + 4)
        position += 4 + 4 * count
        pairs += [(topic, partition) for partition in partitions]
    return pairs
