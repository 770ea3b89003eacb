"""Where the records of a read model are served from."""

from enum import StrEnum


class Placement(StrEnum):
    """PARTITIONED: a partition is on its owner and its standbys. REPLICATED: every partition is on every node.

    REDIS: every partition is in one Redis, which its owner writes and every node reads.
    """

    PARTITIONED = "partitioned"
    REPLICATED = "replicated"
    REDIS = "redis"

    @property
    def is_everywhere(self) -> bool:
        """Whether every node answers for every key by itself."""
        return self is not Placement.PARTITIONED
