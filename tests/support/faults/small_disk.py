"""A disk of a few megabytes that exists for the duration of a test, to fill it: a file system in memory."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

BALLAST = "ballast"
CHUNK_BYTES = 4096


@dataclass(frozen=True)
class SmallDisk:
    """A file system mounted at `path`.

    refusal: why there is only a directory; empty for a disk.
    """

    path: Path
    refusal: str = ""

    def fill(self) -> None:
        """Use all of its free space."""
        descriptor = os.open(self.path / BALLAST, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            while True:
                os.write(descriptor, bytes(CHUNK_BYTES))
        except OSError:
            assert os.statvfs(self.path).f_bavail == 0
        finally:
            os.close(descriptor)

    def free(self) -> None:
        """Release what `fill` has used."""
        (self.path / BALLAST).unlink()

    @contextmanager
    def filled(self) -> Iterator[None]:
        """Use all of its free space for the duration of a block."""
        self.fill()
        try:
            yield
        finally:
            self.free()


@contextmanager
def small_disk(path: Path, size_mb: int) -> Iterator[SmallDisk]:
    """Mount a disk at a new directory; skips the test, with the reason, where mounting is not permitted."""
    with small_disk_if_permitted(path, size_mb) as disk:
        if disk.refusal:
            pytest.skip(disk.refusal)
        yield disk


@contextmanager
def small_disk_if_permitted(path: Path, size_mb: int) -> Iterator[SmallDisk]:
    """Mount a disk at a new directory; where mounting is not permitted, the disk says so in `refusal`."""
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m,mode=0700", "foldlake-test", str(path)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        reason = mounted.stderr.strip()
        yield SmallDisk(path, f"A full disk needs a file system of its own, and mount is refused: {reason}")
        return
    try:
        yield SmallDisk(path)
    finally:
        # Lazily: a killed process may still have a file open.
        subprocess.run(["umount", "--lazy", str(path)], check=True)
