"""A table as of a time has the content of the newest commit until then; before its first content there is none, and that is an error."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from include.lake.as_of import NoHistoryError, table_as_of

CREATED = datetime(2026, 11, 20, 8, tzinfo=UTC)
FIRST = CREATED + timedelta(hours=1)
SECOND = CREATED + timedelta(days=2)


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table that was created empty, and has got a row at each of two later times."""
    path = str(tmp_path / "balance")
    write_deltalake(path, pa.table({"amount": pa.array([], pa.int64())}))
    for amount in (1, 2):
        write_deltalake(
            path,
            pa.table({"amount": [amount]}),
            mode="append",
            commit_properties=CommitProperties(custom_metadata={"userMetadata": "{}"}),
        )
    for version, time in enumerate((CREATED, FIRST, SECOND)):
        set_time(path, version, time)
    return path


def set_time(path: str, version: int, time: datetime) -> None:
    commit = Path(path) / "_delta_log" / f"{version:020}.json"
    text = commit.read_text()
    (recorded,) = {one["timestamp"] for one in DeltaTable(path).history() if one["version"] == version}
    commit.write_text(
        text.replace(f'"timestamp":{recorded}', f'"timestamp":{round(time.timestamp() * 1000)}')
    )
    os.utime(commit, (time.timestamp(), time.timestamp()))


def amounts(path: str, time: datetime) -> list[int]:
    found: list[int] = table_as_of(path, time).to_pyarrow_table()["amount"].to_pylist()
    return sorted(found)


def test_the_content_is_that_of_the_newest_commit_until_then(table: str) -> None:
    assert amounts(table, FIRST) == [1]
    assert amounts(table, SECOND - timedelta(seconds=1)) == [1]
    assert amounts(table, SECOND + timedelta(days=1)) == [1, 2]


@pytest.mark.parametrize("time", [CREATED - timedelta(days=3), CREATED, FIRST - timedelta(seconds=1)])
def test_before_its_first_content_there_is_no_answer(table: str, time: datetime) -> None:
    with pytest.raises(
        NoHistoryError, match=r"begins at 2026-11-20 09:00:00 UTC: it has nothing as of 2026-11-"
    ):
        table_as_of(table, time)


def test_a_time_without_an_offset_is_refused(table: str) -> None:
    with pytest.raises(ValueError, match="no offset from UTC"):
        table_as_of(table, datetime(2026, 11, 23))  # noqa: DTZ001 - what is refused


def test_a_table_without_content_has_no_history(tmp_path: Path) -> None:
    path = str(tmp_path / "empty")
    write_deltalake(path, pa.table({"amount": pa.array([], pa.int64())}))

    with pytest.raises(NoHistoryError, match="is empty: it has nothing as of"):
        table_as_of(path, datetime.now(UTC))
