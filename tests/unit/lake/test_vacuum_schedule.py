"""VACUUM is due an hour, the retention or fifty commits after the last one."""

from datetime import UTC, datetime, timedelta

import pytest

from include.lake.vacuum_schedule import RECENT_COMMITS, TableCommit, vacuum_is_due

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WEEK_H = 168.0


def commits(*ages_and_operations: tuple[float, str]) -> list[TableCommit]:
    """Return commits that are so many minutes old, the newest first."""
    return [
        TableCommit(NOW - timedelta(minutes=minutes), operation) for minutes, operation in ages_and_operations
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
def test_vacuum_is_due(newest: list[TableCommit], retention_h: float, is_due: bool) -> None:
    assert vacuum_is_due(newest, retention_h, NOW) == is_due
