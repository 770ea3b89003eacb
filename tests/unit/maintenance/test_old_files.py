"""Files that have not been written for a time are removed, and folders that are empty since; nothing else."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from include.maintenance import Removed, remove_old, remove_old_logs

NOW = datetime.now(UTC)
BEFORE = NOW - timedelta(days=30)


def written(path: Path, days_ago: float, content: str = "log") -> Path:
    """Write a file, and give it and its folder this age."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    aged(path, days_ago)
    aged(path.parent, days_ago)
    return path


def aged(path: Path, days_ago: float) -> None:
    then_s = (NOW - timedelta(days=days_ago)).timestamp()
    os.utime(path, (then_s, then_s))


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def test_only_old_files_are_removed(tmp_path: Path) -> None:
    written(tmp_path / "old.html", 31, "12345")
    written(tmp_path / "new.html", 29)

    assert remove_old(tmp_path, BEFORE) == Removed(1, 5)
    assert files(tmp_path) == ["new.html"]


def test_folders_that_become_empty_are_removed_too(tmp_path: Path) -> None:
    written(tmp_path / "2026-01-01" / "dags" / "stream.py.log", 40)
    aged(tmp_path / "2026-01-01", 40)

    remove_old(tmp_path, BEFORE)

    assert files(tmp_path) == []


def test_a_new_folder_is_kept_although_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / "run_id=new").mkdir()

    remove_old(tmp_path, BEFORE)

    assert files(tmp_path) == ["run_id=new"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = written(tmp_path / "outside" / "kept.log", 40)
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "latest").symlink_to(outside.parent)

    remove_old(logs, BEFORE)

    assert outside.exists()
    assert (logs / "latest").is_symlink()


def test_a_missing_folder_has_nothing_to_remove(tmp_path: Path) -> None:
    assert remove_old(tmp_path / "reports", BEFORE) == Removed()


def test_the_result_is_readable() -> None:
    assert str(Removed(12_345, 6_789_000) + Removed(1, 0)) == "12,346 files of 6.8 MB"


def log(logs: Path, dag: str, run: str, days_ago: float) -> Path:
    path = written(logs / f"dag_id={dag}" / f"run_id={run}" / "task_id=t" / "attempt=1.log", days_ago)
    aged(path.parent.parent, days_ago)
    return path


def test_the_logs_of_each_dag_s_newest_run_are_kept(tmp_path: Path) -> None:
    running = log(tmp_path, "stream", "since-march", 90)
    ended = log(tmp_path, "stream", "before", 91)
    old = log(tmp_path, "compaction", "old", 60)
    recent = log(tmp_path, "compaction", "recent", 1)
    processor = written(tmp_path / "dag_processor" / "2026-01-01" / "stream.py.log", 60)

    assert remove_old_logs(tmp_path, BEFORE).files == 3

    assert [path.exists() for path in (running, ended, old, recent, processor)] == [
        True,
        False,
        False,
        True,
        False,
    ]
    assert not ended.parent.parent.exists()
