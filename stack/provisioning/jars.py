"""Downloads the files of a lock from the Maven repository, in parallel, each verified by its digest.

A lock, not a resolver: every machine has the files that were tested, and a start needs no network.

`./foldlake` prepares those of stack/jars.lock. `python -m stack.provisioning.jars <lock> <tools directory>`, run in the
bootstrap environment, downloads those of another lock, which must not name its sets.
"""

import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from jgo.maven import MavenContext, PythonResolver

from stack.provisioning.layout import Layout, LockedFile, read_lock, unpacked

PARALLEL_DOWNLOADS = 6
ATTEMPTS = 4
DOWNLOAD_TIMEOUT_S = 120


class DownloadError(Exception):
    """A file could not be downloaded, or its digest differs from that in the lock."""


def install_jars(layout: Layout, on_bytes: Callable[[int], None]) -> None:
    """Download the files of stack/jars.lock into the directory of each set, and remove all others.

    Args:
        layout: the tools directory.
        on_bytes: called with the number of bytes of each file that is present, and of each chunk that arrives.

    Raises:
        DownloadError: a file could not be downloaded, or its digest differs from that in the lock.
    """
    layout.mark_unready("jars")
    files = read_lock()
    download(layout, files, on_bytes)
    for jar_set in {file.jar_set for file in files}:
        wanted = {file.name for file in files if file.jar_set == jar_set}
        for stray in layout.jars(jar_set).glob("*.jar"):
            if stray.name not in wanted:
                stray.unlink()
    layout.mark_ready("jars")


def download(layout: Layout, files: Sequence[LockedFile], on_bytes: Callable[[int], None]) -> None:
    """Download files into the directory of their set; keeps those that are correct. Arguments and errors as `install_jars`."""
    with ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool:
        # Largest first, so that the downloads finish at about the same time.
        jobs = [
            pool.submit(_install, layout, file, on_bytes)
            for file in sorted(files, key=lambda file: -file.size_bytes)
        ]
    for job in jobs:
        job.result()


def _install(layout: Layout, file: LockedFile, on_bytes: Callable[[int], None]) -> None:
    is_archive = file.packaging == "tar.gz"
    target = unpacked(layout, file) if is_archive else layout.jars(file.jar_set) / file.name
    if target.is_dir() or (target.is_file() and _sha256(target) == file.sha256):
        on_bytes(file.size_bytes)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    # In the target's directory, so that the last step is an atomic rename.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".incoming-") as scratch:
        found = _fetch(file, Path(scratch), on_bytes)
        if is_archive:
            folder = Path(scratch) / "unpacked"
            unpack(found, folder)
            found = folder
        if target.is_dir():
            shutil.rmtree(target)
        found.replace(target)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive whose digest has been checked."""
    with tarfile.open(archive) as opened:
        # Python 3.11.0 to 3.11.3, such as Debian 12's, have no filters.
        opened.extraction_filter = getattr(tarfile, "data_filter", lambda member, _path: member)
        opened.extractall(folder)  # noqa: S202 - as above


def _fetch(file: LockedFile, scratch: Path, on_bytes: Callable[[int], None]) -> Path:
    """Download into the scratch directory, with retries when a connection breaks."""
    problem = ""
    for attempt in range(ATTEMPTS):
        counted = _Counted(on_bytes)
        # A separate cache per attempt: jgo treats any existing file as complete.
        context = MavenContext(
            resolver=PythonResolver(progress_callback=counted.download),
            repo_cache=scratch / str(attempt),
            remote_repos=_repositories(),
            timeout=DOWNLOAD_TIMEOUT_S,
        )
        component = context.project(file.group, file.artifact).at_version(file.version)
        try:
            path = component.artifact(file.classifier, file.packaging).resolve()
            if _sha256(path) == file.sha256:
                on_bytes(file.size_bytes - counted.total)
                return path
            problem = "its digest differs from that in the lock"
        except (OSError, RuntimeError) as error:
            problem = str(error)
        on_bytes(-counted.total)
    message = f"{file.group}:{file.artifact}:{file.version} could not be downloaded: {problem}"
    raise DownloadError(message)


def _repositories() -> dict[str, str] | None:
    """Return the user's mirror, or None, which makes jgo use Maven Central."""
    mirror = os.environ.get("FOLDLAKE_MAVEN_MIRROR", "")
    return {"mirror": mirror.rstrip("/")} if mirror else None


class _Counted:
    """Reports the bytes of one download as they arrive."""

    def __init__(self, on_bytes: Callable[[int], None]) -> None:
        self._on_bytes = on_bytes
        self.total = 0

    @contextmanager
    def download(self, _name: str, _size_bytes: int) -> Iterator[Callable[[int], None]]:
        """Return jgo's progress callback."""
        yield self._add

    def _add(self, count: int) -> None:
        self.total += count
        self._on_bytes(count)


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


if __name__ == "__main__":
    try:
        download(Layout(Path(sys.argv[2])), read_lock(Path(sys.argv[1])), lambda _bytes: None)
    except DownloadError as failure:
        sys.exit(str(failure))
