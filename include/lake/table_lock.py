"""The lock of `lake/<model>`: one writer at a time on this machine, whether launched by Airflow or not."""

from contextlib import AbstractContextManager
from pathlib import Path

from include.errors import FoldlakeError
from include.files import FileLockedError, file_lock

# A promotion of a large table takes minutes. After this wait a job fails, and Airflow retries it.
LOCK_WAIT_S = 120.0


class LakeLockedError(FoldlakeError):
    """Another process writes to the table."""


def lock_path(home: Path, model: str) -> Path:
    """Return the file on which a writer of `lake/<model>` holds an exclusive `flock`."""
    return home / "lake-locks" / model.replace("/", ".")


def lake_lock(home: Path, model: str) -> AbstractContextManager[None]:
    """Hold the lock of `lake/<model>` for a block of code; the kernel releases it when this process ends.

    Delta also detects a second writer, but only at its commit, after all of its work.

    Raises:
        LakeLockedError: another process holds the lock for longer than LOCK_WAIT_S.
    """

    def locked(error: FileLockedError) -> LakeLockedError:
        return LakeLockedError(
            f"lake/{model} was still being written by another process (pid {error.holder or 'unknown'}) after "
            f"{LOCK_WAIT_S:.0f} s, so nothing was changed. Hint: retry when that process has ended; the lock is {error.path}."
        )

    return file_lock(lock_path(home, model), wait_s=LOCK_WAIT_S, error=locked)
