"""Downloads what stack/jars.lock lists from the Maven repository, several at a time, each checked by its digest."""

import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from jgo.maven import MavenContext, PythonResolver

from stack.provisioning.jars_lock import LockedFile, read_lock, unpacked
from stack.provisioning.layout import Layout

PARALLEL_DOWNLOADS = 6
ATTEMPTS = 4
DOWNLOAD_TIMEOUT_S = 120


class DownloadError(Exception):
    """A file could not be fetched, or is not the one that was locked."""


def install_jars(layout: Layout, on_bytes: Callable[[int], None]) -> None:
    """Make every set's directory hold exactly its locked files; keeps what is there and right.

    Args:
        layout: the tools directory.
        on_bytes: told of every number of bytes that is there or has arrived.

    Raises:
        DownloadError: a file could not be had, or has another digest than the lock says.
    """
    layout.mark_unready("jars")
    files = read_lock()
    with ThreadPoolExecutor(PARALLEL_DOWNLOADS) as pool:
        # The largest first: the last to finish is then a small one.
        jobs = [
            pool.submit(_install, layout, file, on_bytes)
            for file in sorted(files, key=lambda file: -file.size_bytes)
        ]
    for job in jobs:
        job.result()
    for jar_set in {file.jar_set for file in files}:
        wanted = {file.name for file in files if file.jar_set == jar_set}
        for stray in layout.jars(jar_set).glob("*.jar"):
            if stray.name not in wanted:
                stray.unlink()
    layout.mark_ready("jars")


def _install(layout: Layout, file: LockedFile, on_bytes: Callable[[int], None]) -> None:
    is_archive = file.packaging == "tar.gz"
    target = unpacked(layout, file) if is_archive else layout.jars(file.jar_set) / file.name
    if target.is_dir() or (target.is_file() and _sha256(target) == file.sha256):
        on_bytes(file.size_bytes)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that the last step is a rename: what is there is whole.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".incoming-") as scratch:
        found = _fetch(file, Path(scratch), on_bytes)
        if is_archive:
            whole = Path(scratch) / "unpacked"
            with tarfile.open(found) as archive:
                archive.extractall(whole, filter="data")
            found = whole
        if target.is_dir():
            shutil.rmtree(target)
        found.replace(target)


def _fetch(file: LockedFile, scratch: Path, on_bytes: Callable[[int], None]) -> Path:
    """Download into the scratch directory; a connection that breaks is tried again."""
    problem = ""
    for attempt in range(ATTEMPTS):
        counted = _Counted(on_bytes)
        # A cache of its own for every attempt: jgo takes any file that is there for a whole one.
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
            problem = "its content is not what stack/jars.lock has the digest of"
        except (OSError, RuntimeError) as error:
            problem = str(error)
        on_bytes(-counted.total)
    message = f"{file.group}:{file.artifact}:{file.version} could not be downloaded: {problem}"
    raise DownloadError(message)


def _repositories() -> dict[str, str] | None:
    """Return the user's mirror, or nothing: then jgo uses Maven Central."""
    mirror = os.environ.get("FOLDLAKE_MAVEN_MIRROR", "")
    return {"mirror": mirror.rstrip("/")} if mirror else None


class _Counted:
    """Passes on how many bytes of one download have arrived."""

    def __init__(self, on_bytes: Callable[[int], None]) -> None:
        self._on_bytes = on_bytes
        self.total = 0

    @contextmanager
    def download(self, _name: str, _size_bytes: int) -> Iterator[Callable[[int], None]]:
        """Serve as jgo's progress callback."""
        yield self._add

    def _add(self, count: int) -> None:
        self.total += count
        self._on_bytes(count)


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
