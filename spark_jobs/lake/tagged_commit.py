"""Finds the newest commit of a Delta table that has a tag of Foldlake."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

Tag = TypeVar("Tag")

# One of the newest commits almost always has a tag; reading a long history takes seconds.
NEWEST_COMMITS = 20

# Operations that never change a table's content.
CONTENT_PRESERVING_OPERATIONS = frozenset(
    {
        "ADD COLUMNS",
        "CHANGE COLUMN",
        "CLUSTER BY",
        "CREATE TABLE",
        "OPTIMIZE",
        "SET TBLPROPERTIES",
        "UNSET TBLPROPERTIES",
        "UPDATE SCHEMA",
        "UPGRADE PROTOCOL",
        "VACUUM END",
        "VACUUM START",
    }
)


@dataclass(frozen=True)
class TaggedCommit(Generic[Tag]):
    """The newest commit with a tag of Foldlake.

    overwritten_by: the operation of a newer, untagged commit that changed the content; empty if there is none.
    """

    tag: Tag
    version: int
    committed_at: datetime
    overwritten_by: str = ""


def newest_commit(
    spark: SparkSession, path: str, read_tag: Callable[[str | None], Tag | None]
) -> TaggedCommit[Tag] | None:
    """Return the newest commit of a table with a tag of Foldlake; None if there is no such commit or no table.

    read_tag: reads a commit's metadata; None when it is not a tag. If a newer commit without a tag has changed the content,
    `overwritten_by` names it.
    """
    if not DeltaTable.isDeltaTable(spark, path):
        return None
    table = DeltaTable.forPath(spark, path)
    for limit in (NEWEST_COMMITS, None):
        others = ""
        columns = ("version", "timestamp", "operation", "userMetadata")
        for commit in table.history(limit).select(*columns).orderBy("version", ascending=False).collect():
            tag = read_tag(commit.userMetadata)
            if tag is not None:
                return TaggedCommit(tag, commit.version, commit.timestamp.astimezone(UTC), others)
            if commit.operation not in CONTENT_PRESERVING_OPERATIONS:
                others = others or f"{commit.operation} in version {commit.version}"
    return None
