"""When a table is due for VACUUM, from its commits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

# Files are retained for a week by default, so an extra hour does not matter.
VACUUM_INTERVAL_S = 3600.0
RECENT_COMMITS = 50
SECONDS_PER_HOUR = 3600


@dataclass(frozen=True)
class TableCommit:
    """A commit of a Delta table."""

    committed_at: datetime
    operation: str


def vacuum_is_due(newest: Sequence[TableCommit], retention_h: float, now: datetime) -> bool:
    """Return whether the last VACUUM is an hour, the retention or 50 commits old, whichever is least.

    newest: the table's newest 50 commits, or all of them.
    """
    vacuums = [commit.committed_at for commit in newest if commit.operation == "VACUUM END"]
    if not vacuums and len(newest) == RECENT_COMMITS:
        return True
    since = max(vacuums) if vacuums else min(commit.committed_at for commit in newest)
    return now - since >= timedelta(seconds=min(VACUUM_INTERVAL_S, retention_h * SECONDS_PER_HOUR))
