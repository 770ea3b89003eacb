"""Removes old rows from Airflow's database: `python -m include.airflow.database_cleanup <ISO time>`, outside of Airflow's tasks.

`airflow db clean` removes what has no run to belong to. It would also remove the tasks of runs that are still running, such as the
stream's, whose task is months old: runs are therefore removed here, if they have ended, together with all that refers to them.
"""

import sqlite3
import sys
from datetime import datetime
from pathlib import Path

from airflow import settings
from airflow.models.dagrun import DagRun
from airflow.utils.db_cleanup import drop_archived_tables, run_cleanup
from airflow.utils.session import create_session
from sqlalchemy import delete, func, make_url, select, table
from sqlalchemy.orm import Session

from include.airflow.database import REPORTED

ENDED = ("success", "failed")
# Tables of events and of Airflow's own processes: nothing refers to their rows.
EVENT_TABLES = ["asset_event", "import_error", "job", "log", "revoked_token"]
# A batch is one transaction. SQLite has one writer: the scheduler and the API server wait for it.
BATCH_ROWS = 500
# VACUUM writes the whole file again: only if it becomes notably smaller. Otherwise SQLite uses the free pages for new rows.
FREE_SHARE = 0.2
FREE_BYTES = 4 * 1024 * 1024
LOCK_TIMEOUT_S = 120.0


def main(before: datetime) -> None:
    """Remove what is older, and report what was removed."""
    with create_session() as session:
        # Left behind by a cleanup that was killed.
        drop_archived_tables(None, needs_confirm=False, session=session)
    _report(f"{remove_runs(before):,} runs with their tasks")
    with create_session() as session:
        rows = _rows(session)
        run_cleanup(
            clean_before_timestamp=before,  # type: ignore[arg-type]  # it accepts any datetime
            table_names=EVENT_TABLES,
            confirm=False,
            skip_archive=True,
            batch_size=BATCH_ROWS * 20,
            error_on_cleanup_failure=True,
            session=session,
        )
        left = _rows(session)
    for name in EVENT_TABLES:
        if rows[name] > left[name]:
            _report(f"{rows[name] - left[name]:,} rows of {name}")
    url = make_url(settings.SQL_ALCHEMY_CONN or "")
    if url.get_backend_name() == "sqlite" and url.database:
        _report(compact_sqlite(Path(url.database)))


def remove_runs(before: datetime) -> int:
    """Remove the runs that ended before this time, except the newest of each DAG and kind; return their number.

    The database removes what refers to a run: its tasks, their tries, XComs, notes.
    """
    removed = 0
    with create_session() as session:
        newest = list(session.scalars(select(func.max(DagRun.id)).group_by(DagRun.dag_id, DagRun.run_type)))
    while True:
        with create_session() as session:
            old = (
                select(DagRun.id)
                .where(DagRun.state.in_(ENDED), DagRun.end_date < before, DagRun.id.not_in(newest))
                .limit(BATCH_ROWS)
            )
            ids = list(session.scalars(old))
            if not ids:
                return removed
            session.execute(
                delete(DagRun).where(DagRun.id.in_(ids)), execution_options={"synchronize_session": False}
            )
        removed += len(ids)


def compact_sqlite(path: Path) -> str:
    """Return free pages to the file system if that is worthwhile; return a line that says what was done."""
    with sqlite3.connect(path, timeout=LOCK_TIMEOUT_S, isolation_level=None) as connection:
        pages, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        if free < pages * FREE_SHARE or free * size < FREE_BYTES:
            return f"{free * size / 1e6:,.1f} of {pages * size / 1e6:,.1f} MB are free for new rows"
        connection.execute("VACUUM")
        # In WAL mode, the file shrinks only when the log is written back.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (left,) = connection.execute("PRAGMA page_count").fetchone()
    connection.close()
    return f"the file shrank from {pages * size / 1e6:,.1f} to {left * size / 1e6:,.1f} MB"


def _report(line: str) -> None:
    """Print a line for the caller, which ignores what Airflow prints."""
    print(f"{REPORTED}{line}", flush=True)  # noqa: T201


def _rows(session: Session) -> dict[str, int]:
    return {
        name: int(session.scalar(select(func.count()).select_from(table(name))) or 0) for name in EVENT_TABLES
    }


if __name__ == "__main__":
    main(datetime.fromisoformat(sys.argv[1]))
