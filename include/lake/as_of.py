"""A table as it was at a time. A time before its first content is an error: delta-rs returns an empty table then, without a word."""

from datetime import UTC, datetime

from deltalake import DeltaTable

from include.errors import FoldlakeError


class NoHistoryError(FoldlakeError):
    """The table's history does not go back to the time."""


def table_as_of(path: str, time: datetime) -> DeltaTable:
    """Return a table as of the newest commit at or before a time, which has an offset from UTC.

    Raises NoHistoryError for a time before the first commit with content, or of which the history is removed; ValueError without an offset.
    """
    if time.tzinfo is None:
        message = f"{time} has no offset from UTC: give one, such as datetime(2026, 11, 23, tzinfo=UTC)."
        raise ValueError(message)
    table = DeltaTable(path)
    history = table.history()
    # The commit that creates a table has no tag of Foldlake's, and no rows.
    first = next((commit for commit in reversed(history) if commit.get("userMetadata")), None)
    table.load_as_version(time)
    if first is not None and table.version() >= first["version"]:
        is_oldest = table.version() == history[-1]["version"]
        # Of an earlier time than the oldest commit's, delta-rs returns the oldest one.
        if not is_oldest or time.timestamp() * 1000 >= history[-1]["timestamp"]:
            return table
    begins = f"begins at {_utc(first['timestamp'] / 1000)} UTC" if first is not None else "is empty"
    raise NoHistoryError(
        f"The history of {path} {begins}: it has nothing as of {_utc(time.timestamp())} UTC. Take a later time."
    )


def _utc(unix_s: float) -> str:
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M:%S}"
