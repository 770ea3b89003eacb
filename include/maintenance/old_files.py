"""Removes files that have not been written for a time."""

import os
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

MEGABYTE = 1e6


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
