"""Where a key is: its read model, version and partition, and the node's role for it."""

from enum import StrEnum
from typing import NamedTuple

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
