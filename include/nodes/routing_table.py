"""Who is in the consumer group and what each member has been assigned: the routing table, as Kafka shows it.

Asked for with librdkafka's older request: the newer one, `describe_consumer_groups`, aborts the whole process now and
then when the group's coordinator goes away while it is being asked (librdkafka issue 4605, open).
"""

import struct
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

# The broker makes a static member's id out of its group.instance.id, a dash and a UUID.
UUID_CHARACTERS = 36
# Between two rebalances the group has no assignment to show.
STABLE = "Stable"


@dataclass(frozen=True)
class RoutingTable:
    """Which node owns which (topic, partition), by URL, and every member's name by URL."""

    owners: Mapping[tuple[str, int], str] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)


def routing_table(admin: AdminClient, group: str, timeout_s: float) -> RoutingTable | None:
    """Return the group's routing table, or None while it is not stable; raises KafkaException."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = admin.list_groups(group, timeout=timeout_s)
    described = next((g for g in found if g.id == group), None)
    if described is None or described.state != STABLE:
        return None
    if described.error is not None:
        raise KafkaException(described.error)
    owners: dict[tuple[str, int], str] = {}
    nodes: dict[str, str] = {}
    for member in described.members:
        nodes[member.client_id] = member.id[: -UUID_CHARACTERS - 1] or member.client_id
        owners |= dict.fromkeys(parse_assignment(member.assignment), member.client_id)
    return RoutingTable(owners, nodes)


def parse_assignment(assignment: bytes) -> list[tuple[str, int]]:
    """Return the (topic, partition) pairs of a member's assignment.

    Source: Kafka's ConsumerProtocolAssignment.json: version, then an array of topic and array of partitions; what
    follows is the assignor's own.
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
