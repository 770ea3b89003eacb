"""The settings that choose one of a few ways to work, as enumerations."""

from enum import StrEnum


class Placement(StrEnum):
    """Where the records of a read model are served from.

    PARTITIONED: a partition is on its owner and its standbys. REPLICATED: every partition is on every node.
    REDIS: every partition is in one Redis, which its owner writes and every node reads.
    """

    PARTITIONED = "partitioned"
    REPLICATED = "replicated"
    REDIS = "redis"

    @property
    def is_everywhere(self) -> bool:
        """Whether every node answers for every key by itself."""
        return self is not Placement.PARTITIONED


class CheckEngine(StrEnum):
    """Which engine compares stored records with a replay of the log.

    AUTO: DuckDB where it can; Spark where it cannot, and to confirm what fails. DUCKDB and SPARK: only this one.
    """

    AUTO = "auto"
    DUCKDB = "duckdb"
    SPARK = "spark"


class LogFormat(StrEnum):
    """How processes write their logs. TEXT: a line of text for each message. JSON: a JSON object on a line."""

    TEXT = "text"
    JSON = "json"
