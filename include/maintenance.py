"""Removes what is old: files that have not been written for a time, Airflow's logs, and records of ended versions.

Each action can be killed and repeated.
"""

import logging
import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from include.rebuild.version_cleanup import find_leftovers
from include.settings import Settings
from include.versions.registry import VersionRegistry, change
from include.versions.version_lock import lock_paths
from include.versions.version_record import ENDED_STAGES, ReadModelVersions

MEGABYTE = 1e6
# Airflow's `log_filename_template` begins with these two folders.
DAG_FOLDER = "dag_id="
RUN_FOLDER = "run_id="
LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Removed:
    """Removed files, and their size."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: "Removed") -> "Removed":
        """Return the sum."""
        return Removed(self.files + other.files, self.bytes + other.bytes)

    def __str__(self) -> str:
        """Return the numbers in one line."""
        return f"{self.files:,} files of {self.bytes / MEGABYTE:,.1f} MB"


def remove_old(folder: Path, before: datetime, *, kept: Collection[Path] = ()) -> Removed:
    """Remove the files below a folder that were last written before this time, then the folders that are empty since before it.

    The folder itself remains; it may be missing. Links are not followed, and only removed if they are old.

    Args:
        folder: where to look, at any depth.
        before: the time.
        kept: files and whole folders to leave as they are, by their paths below `folder`.
    """
    removed, _is_empty = _sweep(str(folder), before.timestamp(), frozenset(map(str, kept)))
    return removed


def _sweep(folder: str, before_s: float, kept: frozenset[str]) -> tuple[Removed, bool]:
    """Return what was removed, and whether the folder is empty now."""
    removed = Removed()
    is_empty = True
    for entry in _entries(folder):
        inside, is_gone = (Removed(), False) if entry.path in kept else _remove_if_old(entry, before_s, kept)
        removed += inside
        is_empty &= is_gone
    return removed, is_empty


def _remove_if_old(entry: os.DirEntry[str], before_s: float, kept: frozenset[str]) -> tuple[Removed, bool]:
    """Return what was removed, and whether the entry is gone."""
    try:
        # Read before anything in it is removed, which changes the time of a folder.
        found = entry.stat(follow_symlinks=False)
        is_old = found.st_mtime < before_s
        if entry.is_dir(follow_symlinks=False):
            return _sweep_folder(Path(entry.path), before_s, kept, is_old=is_old)
        if is_old:
            Path(entry.path).unlink()
            return Removed(1, found.st_size), True
    except FileNotFoundError:
        return Removed(), True  # its owner has removed it
    except OSError:
        return Removed(), False  # its owner has just written to it
    return Removed(), False


def _sweep_folder(
    folder: Path, before_s: float, kept: frozenset[str], *, is_old: bool
) -> tuple[Removed, bool]:
    removed, is_empty = _sweep(str(folder), before_s, kept)
    # A new folder is empty until its owner writes the first file.
    if is_empty and is_old:
        folder.rmdir()
    return removed, is_empty and is_old


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def remove_old_logs(logs: Path, before: datetime) -> Removed:
    """Remove the log files that were last written before this time, except those of each DAG's newest run.

    The newest run may still be running: the stream's runs for months, and may log nothing for a long time.
    """
    newest = {run for dag in logs.glob(f"{DAG_FOLDER}*") if (run := _newest_run(dag)) is not None}
    return remove_old(logs, before, kept=newest)


def _newest_run(dag: Path) -> Path | None:
    runs = ((path.stat().st_mtime, path) for path in dag.glob(f"{RUN_FOLDER}*"))
    return max(runs, default=(0.0, None))[1]


def forget_ended_versions(settings: Settings, kept: int) -> list[str]:
    """Remove all but the newest `kept` ended versions of each read model, and their lock files; return a line for each read model.

    A version with leftovers stays until the DAG `retirement` has removed these.
    """
    lines = []
    with VersionRegistry(settings.kafka_connection, settings.topics.replication_factor) as registry:
        for record in registry.read().values():
            numbers = frozenset(
                number
                for number in ended_before_newest(record, kept)
                if not find_leftovers(settings, record.read_model, number)
            )
            if not numbers:
                continue
            change(registry, record.read_model, partial(forget, numbers=numbers))
            for number in numbers:
                for lock in lock_paths(settings.home, record.read_model, number):
                    lock.unlink(missing_ok=True)
            lines.append(
                f"{len(numbers):,} ended versions of {record.read_model}, up to v{max(numbers)}: {len(record.versions) - len(numbers)} "
                "versions are left in the registry"
            )
            LOG.info("removed %s", lines[-1])
    return lines


def ended_before_newest(record: ReadModelVersions, kept: int) -> list[int]:
    """Return the numbers of the retired and abandoned versions except the newest `kept`, and except the record's last version.

    The last version stays because the next number is derived from it.
    """
    last = max(v.number for v in record.versions)
    ended = sorted(v.number for v in record.versions if v.stage in ENDED_STAGES and v.number != last)
    return ended[: max(0, len(ended) - kept)]


def forget(record: ReadModelVersions, numbers: Collection[int]) -> ReadModelVersions:
    """Remove these versions from the record if they have ended; the same object if there is none to remove."""
    last = max(v.number for v in record.versions)
    left = tuple(
        v
        for v in record.versions
        if v.number not in numbers or v.stage not in ENDED_STAGES or v.number == last
    )
    return record if len(left) == len(record.versions) else replace(record, versions=left)
