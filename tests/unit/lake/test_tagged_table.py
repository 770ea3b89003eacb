"""The newest tag of a table, and its VACUUM: due an hour, the retention or fifty commits after the last one."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from include.lake.tagged_table import (
    NEWEST_COMMITS,
    RECENT_COMMITS,
    NewestTag,
    TableCommit,
    newest_tag,
    vacuum_is_due,
)
from include.lake.tags import AppendTag

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WEEK_H = 168.0


def commits(*ages_and_operations: tuple[float, str]) -> list[TableCommit[AppendTag]]:
    """Return commits that are so many minutes old, the newest first."""
    return [
        TableCommit(0, NOW - timedelta(minutes=minutes), operation)
        for minutes, operation in ages_and_operations
    ]


@pytest.mark.parametrize(
    ("newest", "retention_h", "is_due"),
    [
        (commits((1, "MERGE"), (59, "VACUUM END"), (300, "MERGE")), WEEK_H, False),
        (commits((1, "MERGE"), (60, "VACUUM END"), (300, "MERGE")), WEEK_H, True),
        (commits((1, "MERGE"), (59, "CREATE TABLE")), WEEK_H, False),
        (commits((1, "MERGE"), (60, "CREATE TABLE")), WEEK_H, True),
        (commits((1, "MERGE"), (31, "VACUUM END"), (59, "CREATE TABLE")), 0.5, True),
        (commits((1, "MERGE"), (29, "VACUUM END"), (59, "CREATE TABLE")), 0.5, False),
        (commits(*((1, "MERGE") for _ in range(RECENT_COMMITS))), WEEK_H, True),
        (commits(*((1, "MERGE") for _ in range(RECENT_COMMITS - 1))), WEEK_H, False),
    ],
)
def test_vacuum_is_due(newest: list[TableCommit[AppendTag]], retention_h: float, is_due: bool) -> None:
    assert vacuum_is_due(newest, retention_h, NOW) == is_due


TAG = AppendTag("trend", "trends", "i_Pm")


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([], None),
        (["MERGE"], None),
        (["append"], NewestTag(TAG, 0)),
        # Newest last.
        (["append", "OPTIMIZE", "VACUUM END", "SET TBLPROPERTIES"], NewestTag(TAG, 3)),
        (["append", "DELETE", "RESTORE", "OPTIMIZE"], NewestTag(TAG, 3, "RESTORE in version 2")),
        (["DELETE", "append"], NewestTag(TAG, 1)),
        # Behind the commits that are read first.
        (["append", *["WRITE"] * NEWEST_COMMITS], NewestTag(TAG, 20, "WRITE in version 20")),
    ],
)
def test_the_newest_tag_and_what_has_changed_the_table_since(
    operations: list[str], expected: NewestTag[AppendTag] | None
) -> None:
    def history(limit: int | None) -> Sequence[TableCommit[AppendTag]]:
        commits = [
            TableCommit(version, NOW, operation, TAG if operation == "append" else None)
            for version, operation in enumerate(operations)
        ]
        return commits[::-1][:limit]

    assert newest_tag(history) == expected
