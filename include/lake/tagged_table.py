"""The commits of a Delta table with their tags: read with delta-rs, the newest tag among them, and when VACUUM is due."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

from include.lake.tags import TagReader, TagT

if TYPE_CHECKING:
    from deltalake import DeltaTable

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
# Files are retained for a week by default, so an extra hour does not matter.
VACUUM_INTERVAL_S = 3600.0
RECENT_COMMITS = 50
SECONDS_PER_HOUR = 3600


@dataclass(frozen=True)
class TableCommit(Generic[TagT]):
    """One commit of a Delta table; `tag` is None if Foldlake did not write it."""

    delta_version: int
    committed_at: datetime
    operation: str
    tag: TagT | None = None


class TaggedTable(Generic[TagT]):
    """A Delta table as of its newest commit, read without Spark."""

    def __init__(self, delta: "DeltaTable", read_tag: TagReader[TagT]) -> None:
        self.delta = delta
        self._read_tag = read_tag

    @classmethod
    def open(cls, path: str, read_tag: TagReader[TagT]) -> "TaggedTable[TagT] | None":
        """Return the table in a folder, or None if it does not exist yet."""
        # The library takes 20 MB, which Spark jobs and idle workers of a query node do not need.
        from deltalake import DeltaTable  # noqa: PLC0415
        from deltalake.exceptions import TableNotFoundError  # noqa: PLC0415

        try:
            return cls(DeltaTable(path), read_tag)
        except TableNotFoundError:
            return None

    def history(self, limit: int | None = None) -> tuple[TableCommit[TagT], ...]:
        """Return the commits, newest first."""
        return tuple(
            TableCommit(
                delta_version=entry["version"],
                committed_at=datetime.fromtimestamp(entry["timestamp"] / 1000, UTC),
                operation=entry["operation"],
                tag=self._read_tag(entry.get("userMetadata")),
            )
            for entry in self.delta.history(limit)
        )

    @cached_property
    def files(self) -> dict[str, list[Any]]:
        """The columns of the list of data files: `num_records` (None without statistics), `size_bytes`, `partition.<column>`."""
        import pyarrow as pa  # noqa: PLC0415 - as deltalake

        columns: dict[str, list[Any]] = pa.table(self.delta.get_add_actions(flatten=True)).to_pydict()
        return columns


@dataclass(frozen=True)
class NewestTag(Generic[TagT]):
    """The newest tag of a table.

    delta_version: the table's newest version. overwritten_by: the operation of a commit without a tag that has changed the content since
    the tagged one; empty if there is none.
    """

    tag: TagT
    delta_version: int
    overwritten_by: str = ""


def newest_tag(history: Callable[[int | None], Sequence[TableCommit[TagT]]]) -> NewestTag[TagT] | None:
    """Return the newest tag of a table; None if no commit has one.

    history: returns the newest commits, at most as many as its argument, newest first.
    """
    for limit in (NEWEST_COMMITS, None):
        commits = history(limit)
        others = ""
        for commit in commits:
            if commit.tag is not None:
                return NewestTag(commit.tag, commits[0].delta_version, others)
            if commit.operation not in CONTENT_PRESERVING_OPERATIONS:
                others = others or f"{commit.operation} in version {commit.delta_version}"
    return None


def vacuum_is_due(newest: Sequence[TableCommit[TagT]], retention_h: float, now: datetime) -> bool:
    """Return whether the last VACUUM is an hour, the retention or 50 commits old, whichever is least.

    newest: the table's newest 50 commits, or all of them.
    """
    vacuums = [commit.committed_at for commit in newest if commit.operation == "VACUUM END"]
    if not vacuums and len(newest) == RECENT_COMMITS:
        return True
    since = max(vacuums) if vacuums else min(commit.committed_at for commit in newest)
    return now - since >= timedelta(seconds=min(VACUUM_INTERVAL_S, retention_h * SECONDS_PER_HOUR))
