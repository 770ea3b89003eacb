"""The locks of a version: of its checkpoint, held by its one writer, a rebuild's catch-up or the stream driver, and of its staging table.

The checkpoint of each other query of the stream driver has a lock as well.

The kernel releases a lock when its holder ends, even if it is killed. A lock is local to one machine: the stream driver
and the tasks of a rebuild both run where Airflow's scheduler runs.
"""

import logging
from contextlib import AbstractContextManager
from pathlib import Path

from include.errors import FoldlakeError
from include.files import FileLockedError, file_lock

LOG = logging.getLogger(__name__)


class VersionLockedError(FoldlakeError):
    """Another process writes the checkpoint of this version or query."""


def lock_path(home: Path, read_model: str, number: int) -> Path:
    """Return the file on which the only writer of a version holds an exclusive `flock`."""
    return home / "version-locks" / read_model / f"v{number}.lock"


def lock_paths(home: Path, read_model: str, number: int) -> tuple[Path, ...]:
    """Return the files of all locks of a version of a read model."""
    return tuple(lock_path(home, name, number) for name in (read_model, _staging(read_model)))


def emission_lock(home: Path, emission: str, number: int, *, wait_s: float) -> AbstractContextManager[None]:
    """Hold the lock of an emission's checkpoint for a version, or with number 0 that of its consumers' topic, for a block of code.

    Raises VersionLockedError when another process holds it for longer than `wait_s` seconds.
    """
    return version_lock(home, f"{emission}.emission", number, wait_s=wait_s)


def query_lock(home: Path, query: str, *, wait_s: float) -> AbstractContextManager[None]:
    """Hold the lock of the checkpoint of a query that has no versions, that of a flow or of dead letters, for a block of code.

    Raises VersionLockedError when another process holds it for longer than `wait_s` seconds.
    """

    def locked(error: FileLockedError) -> VersionLockedError:
        return VersionLockedError(
            f"Query {query} is still run by process {error.holder or 'unknown'} after {wait_s:.0f} s, which holds the lock {error.path}. "
            "Hint: retry when it has ended."
        )

    return file_lock(home / "query-locks" / f"{query}.lock", wait_s=wait_s, error=locked)


def staging_lock(home: Path, read_model: str, number: int, *, wait_s: float) -> AbstractContextManager[None]:
    """Hold the lock of a version's staging table and verified records for a block of code, beside the lock of its checkpoint.

    Raises VersionLockedError when another process holds it for longer than `wait_s` seconds.
    """
    return version_lock(home, _staging(read_model), number, wait_s=wait_s)


def _staging(read_model: str) -> str:
    return f"{read_model}.staging"


def version_lock(home: Path, read_model: str, number: int, *, wait_s: float) -> AbstractContextManager[None]:
    """Hold a version's lock for a block of code.

    Raises VersionLockedError when another process holds it for longer than `wait_s` seconds.
    """

    def locked(error: FileLockedError) -> VersionLockedError:
        return VersionLockedError(
            f"v{number} of {read_model} is still being written after {wait_s:.0f} s: a job of its rebuild or the stream driver "
            f"(process {error.holder or 'unknown'}) holds the lock {error.path}. Hint: retry when it has ended."
        )

    return file_lock(
        lock_path(home, read_model, number),
        wait_s=wait_s,
        error=locked,
        while_waiting=lambda waited_s: LOG.info(
            "waiting for the lock of %s v%d, held by another writer: %.0f s", read_model, number, waited_s
        ),
    )
