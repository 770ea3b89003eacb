"""Retention: what a year of compactions and a thousand rebuilds leave, before and after the maintenance; Airflow's response times."""

import argparse
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.support.airflow_pages import airflow_environment, serving
from benchmarks.support.report import print_environment
from include.airflow.client import airflow_home
from include.airflow.database import clean_database, database_url, sqlite_file
from include.airflow.names import COMPACTION_DAG
from include.maintenance import forget_ended_versions, remove_old, remove_old_logs
from include.quality.report import reports_directory
from include.rebuild.retirement import sweep
from include.settings import CHECKOUT, Settings
from include.stream.checkpoints import checkpoint_path
from include.versions.registry import VersionRegistry
from include.versions.version_lock import lock_path
from include.versions.version_record import Stage, first_version
from stack.components import airflow
from tests.support.temporary_stack import temporary_stack

DAYS = 365
MODEL = "balance"
MEGABYTE = 1e6
TABLES = ("dag_run", "task_instance", "xcom", "asset_event", "log")
REPORT_BYTES = 20_000
CHECKPOINT_FILES, CHECKPOINT_FILE_BYTES = 20, 4_000
MAX_RESPONSE_S = 2.0


def main() -> None:
    """Fill a home, measure it, run the maintenance, measure it again, and check what is left."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--runs", type=int, default=20_000, help="compactions in a year (20,000; every 5 minutes: 105,000)"
    )
    arguments.add_argument("--rebuilds", type=int, default=1_000, help="ended versions (1,000)")
    arguments.add_argument("--reports", type=int, default=9_000, help="reports of quality checks (9,000)")
    given = arguments.parse_args()
    with temporary_stack(("kafka",)) as settings:
        print_environment(settings)
        kept = settings.retention
        print(
            f"retention airflow {kept.airflow_h:g} h, reports {kept.reports_h:g} h, {kept.ended_versions} ended versions"
        )
        timed("filled", lambda: fill(settings, given.runs, given.rebuilds, given.reports))
        show("before", settings)
        maintain(settings)
        slowest_s = show("after", settings)
        check(settings, given.runs)
    assert slowest_s < MAX_RESPONSE_S, f"Airflow's slowest page took {slowest_s:.1f} s"


def fill(settings: Settings, runs: int, rebuilds: int, reports: int) -> None:
    """Write the leftovers of a year, evenly distributed over it."""
    airflow.prepare(settings)
    environment = airflow_environment(settings)
    python = [sys.executable, "-W", "ignore", "-m"]
    logs = str(airflow_home(settings.home) / "logs")
    for command in (
        ["airflow", "dags", "reserialize"],
        ["tests.support.airflow_history", f"--runs={runs}", f"--days={DAYS}", f"--logs={logs}"],
    ):
        subprocess.run(
            [*python, *command], cwd=CHECKOUT, env=environment, check=True, stdout=subprocess.DEVNULL
        )
    write_reports(reports_directory(settings.home), reports)
    write_versions(settings, rebuilds)


def write_reports(folder: Path, number: int) -> None:
    """Write pages and summaries of quality checks."""
    folder.mkdir(parents=True)
    now_s = time.time()
    for n in range(number):
        written_s = now_s - n * DAYS * 86_400 / number
        for suffix in ("html", "json"):
            path = folder / f"check-{n}.{suffix}"
            path.write_bytes(b"x" * REPORT_BYTES)
            os.utime(path, (written_s, written_s))


def write_versions(settings: Settings, number: int) -> None:
    """Register ended versions before the live one, each with its lock file and a checkpoint that a killed removal has left."""
    first = first_version(MODEL, 1)
    (version,) = first.versions
    ended = [
        replace(
            version,
            number=n,
            stage=Stage.ABANDONED if n % 10 == 0 else Stage.RETIRED,
            changelog_topic=f"{MODEL}.v{n}.changelog",
            reason="benchmark",
            run_id=f"manual__2026-01-01T00:00:00.{n:06}+00:00",
        )
        for n in range(1, number + 1)
    ]
    live = replace(version, number=number + 1, changelog_topic=f"{MODEL}.v{number + 1}.changelog")
    with VersionRegistry(settings.kafka_connection) as registry:
        registry.ensure_topic()
        registry.compare_and_set(replace(first, versions=(*ended, live)), 0)
    for each in (*ended, live):
        lock = lock_path(settings.home, MODEL, each.number)
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.touch()
        checkpoint = Path(checkpoint_path(settings.checkpoints, MODEL, each.number))
        checkpoint.mkdir(parents=True)
        for n in range(CHECKPOINT_FILES):
            (checkpoint / str(n)).write_bytes(b"x" * CHECKPOINT_FILE_BYTES)


def maintain(settings: Settings) -> None:
    """Do what the DAGs `maintenance` and `retirement` do."""
    now = datetime.now(UTC)
    before = now - timedelta(hours=settings.retention.airflow_h)
    url = database_url(settings.home, settings.airflow)
    logs = airflow_home(settings.home) / "logs"
    reports, reports_h = reports_directory(settings.home), settings.retention.reports_h
    timed("airflow_database", lambda: clean_database(url, before))
    timed("airflow_logs", lambda: remove_old_logs(logs, before))
    timed("reports", lambda: remove_old(reports, now - timedelta(hours=reports_h)))
    timed("retirement", lambda: f"{len(sweep(settings, lambda _run_id: True))} versions cleaned up")
    timed("version_registry", lambda: forget_ended_versions(settings, settings.retention.ended_versions))


def timed(name: str, work: Callable[[], object]) -> None:
    """Do some work, and print its duration and its result."""
    began_s = time.monotonic()
    result = work()
    print(f"{name:<18}{time.monotonic() - began_s:>8.1f} s  {'' if result is None else result}", flush=True)


def show(when: str, settings: Settings) -> float:
    """Print sizes, numbers of rows, and the response times of Airflow's pages; return the longest one."""
    home = settings.home
    database = sqlite_file(database_url(home, settings.airflow))
    assert database is not None
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        rows = ", ".join(f"{count_rows(connection, table):,} {table}" for table in TABLES)
    with VersionRegistry(settings.kafka_connection) as registry:
        record = registry.read()[MODEL]
    print(f"\n{when}")
    print(f"  database        {database.stat().st_size / MEGABYTE:>10,.1f} MB  {rows}")
    for name, folder in (
        ("logs", airflow_home(home) / "logs"),
        ("reports", reports_directory(home)),
        ("checkpoints", Path(settings.checkpoints)),
        ("version locks", home / "version-locks"),
    ):
        files, size = usage([folder])
        print(f"  {name:<16}{size / MEGABYTE:>10,.1f} MB  {files:,} files")
    print(
        f"  version record  {len(record.to_json()) / MEGABYTE:>10,.3f} MB  {len(record.versions):,} versions"
    )
    with serving(settings) as pages:
        taken = pages.slowest_s(COMPACTION_DAG)
    for page, seconds in taken.items():
        print(f"  {page:<16}{seconds * 1000:>10,.0f} ms")
    print(flush=True)
    return max(taken.values())


def count_rows(connection: sqlite3.Connection, table: str) -> int:
    """Return the number of rows of a table."""
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608 - TABLES


def usage(folders: Iterable[Path]) -> tuple[int, int]:
    """Return the number of files below folders, and their size."""
    sizes = [
        (Path(at) / name).stat().st_size
        for folder in folders
        for at, _, names in os.walk(folder)
        for name in names
    ]
    return len(sizes), sum(sizes)


def check(settings: Settings, runs: int) -> None:
    """Verify that exactly the runs of the retention time are left, and the live version with all of its files."""
    database = sqlite_file(database_url(settings.home, settings.airflow))
    assert database is not None
    with closing(sqlite3.connect(database)) as connection:
        left = count_rows(connection, f"dag_run WHERE dag_id = '{COMPACTION_DAG}'")
    expected = runs * settings.retention.airflow_h / 24 / DAYS
    # The benchmark itself takes some minutes, in which runs become old enough.
    assert abs(left - expected) <= max(3, expected / 100), f"{left} runs are left, not about {expected:.0f}"
    with VersionRegistry(settings.kafka_connection) as registry:
        live = registry.read()[MODEL].live
    assert live is not None
    files, _ = usage([Path(checkpoint_path(settings.checkpoints, MODEL, live.number))])
    assert files == CHECKPOINT_FILES, "the live version has lost files"
    assert lock_path(settings.home, MODEL, live.number).exists()
    print(f"exact     {left:,} compactions of the retention time are left, and the live version's files")


if __name__ == "__main__":
    main()
