"""The maintenance removes old rows from a real database of Airflow, and nothing that a run needs which has not ended."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from include.airflow.database import DatabaseCleanupError, clean_database, database_url, sqlite_file
from include.settings import CHECKOUT, Settings
from stack.components import airflow
from tests.support.temporary_stack import temporary_settings

RUNS, DAYS, KEPT_DAYS = 4_000, 400, 30
# Kept of each DAG: the runs that ended in the last 30 of 400 days.
KEPT = RUNS * KEPT_DAYS // DAYS
LONG_AGO = (datetime.now(UTC) - timedelta(days=200)).isoformat(" ")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a database with the history of 400 days, a run of `stream` since 200 days, and a rebuild that waits."""
    settings = temporary_settings(tmp_path_factory.mktemp("home"))
    airflow.prepare(settings)
    fill(settings)
    url = database_url(settings.home, settings.airflow)
    with closing(connect(url)) as connection, connection:
        for dag_id, state in (("stream", "running"), ("rebuild", "running"), ("rollback", "failed")):
            insert_old_run(connection, dag_id, state)
    return url


def retained_from() -> datetime:
    """The retention time's start, soon after the database was filled: between two runs, which start every 2.4 hours."""
    return datetime.now(UTC) - timedelta(days=KEPT_DAYS, hours=-1)


def fill(settings: Settings) -> None:
    history = [
        "-m",
        "tests.support.airflow_history",
        f"--runs={RUNS}",
        f"--days={DAYS}",
    ]
    subprocess.run(
        [sys.executable, "-W", "ignore", *history],
        cwd=CHECKOUT,
        env={**os.environ, **airflow.environment(settings)},
        check=True,
    )


def connect(url: str) -> sqlite3.Connection:
    path = sqlite_file(url)
    assert path is not None
    return sqlite3.connect(path)


def insert_old_run(connection: sqlite3.Connection, dag_id: str, state: str) -> None:
    """Insert a run of 200 days ago with one task, as copies of others; it has ended if its state says so."""
    for table in ("dag_run", "task_instance"):
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != "id"]
        changed = {
            "dag_id": f"'{dag_id}'",
            "run_id": "'long-ago'",
            "state": f"'{state}'",
            "start_date": f"'{LONG_AGO}'",
            "end_date": f"'{LONG_AGO}'" if state == "failed" else "NULL",
            "logical_date": "NULL",
        }
        values = ", ".join(changed.get(column, column) for column in columns)
        key = "hex(randomblob(16))" if table == "task_instance" else "(SELECT max(id) + 1 FROM dag_run)"
        connection.execute(
            f"INSERT INTO {table} (id, {', '.join(columns)}) SELECT {key}, {values} FROM {table} LIMIT 1"  # noqa: S608 - fixed names
        )


def count(url: str, table: str, condition: str = "true") -> int:
    with closing(connect(url)) as connection:
        query = f"SELECT count(*) FROM {table} WHERE {condition}"  # noqa: S608 - fixed conditions
        return int(connection.execute(query).fetchone()[0])


@pytest.fixture(scope="module")
def cleaned(url: str) -> str:
    """What the first maintenance reports."""
    return clean_database(url, retained_from())


@pytest.mark.parametrize("dag_id", ["compaction", "quality"])
def test_runs_of_the_retention_time_are_kept_and_older_ones_removed(
    url: str, cleaned: str, dag_id: str
) -> None:
    assert f"{2 * (RUNS - KEPT):,} runs with their tasks" in cleaned
    for table in ("dag_run", "task_instance"):
        assert count(url, table, f"dag_id = '{dag_id}'") == KEPT


def test_what_refers_to_a_run_is_removed_with_it(url: str, cleaned: str) -> None:
    assert f"; {4 * (RUNS - KEPT):,} rows of log" in cleaned
    assert count(url, "xcom") == count(url, "asset_event") == KEPT
    assert count(url, "log", "dag_id IN ('compaction', 'quality')") == 4 * KEPT


def test_a_run_that_has_not_ended_keeps_its_tasks_however_old_it_is(url: str, cleaned: str) -> None:
    assert cleaned
    for dag_id in ("stream", "rebuild"):
        assert count(url, "dag_run", f"dag_id = '{dag_id}'") == 1
        assert count(url, "task_instance", f"dag_id = '{dag_id}'") == 1


def test_the_newest_run_of_a_dag_is_kept_however_old_it_is(url: str, cleaned: str) -> None:
    assert cleaned
    assert count(url, "dag_run", "dag_id = 'rollback'") == 1


def test_no_copy_of_a_removed_row_is_left(url: str, cleaned: str) -> None:
    assert cleaned
    assert count(url, "sqlite_master", "name LIKE '_airflow_deleted%'") == 0


def test_the_file_shrinks_when_much_of_it_is_free(url: str, cleaned: str) -> None:
    assert "the file shrank from" in cleaned
    path = sqlite_file(url)
    assert path is not None
    with closing(connect(url)) as connection:
        pages, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
        )
    assert path.stat().st_size == pages * size


def test_a_second_maintenance_removes_nothing(url: str, cleaned: str) -> None:
    assert cleaned
    again = clean_database(url, retained_from())

    assert again.startswith("0 runs with their tasks")
    assert "shrank" not in again


def test_an_unusable_database_is_an_error_that_says_what_next(tmp_path: Path) -> None:
    with pytest.raises(DatabaseCleanupError, match=r"could not be removed from Airflow's database: .*Hint"):
        clean_database(f"sqlite:///{tmp_path / 'missing' / 'airflow.db'}", retained_from())
