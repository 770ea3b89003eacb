"""The paths of the Delta tables, the columns of a read model's table, and the lock of a table: one writer at a time on this machine."""

from contextlib import AbstractContextManager
from pathlib import Path

from include.declarations.read_model import KEY_COLUMN, POSITION_FIELDS, ReadModel, StateField
from include.errors import FoldlakeError
from include.files import FileLockedError, file_lock


def table_path(lake_root: str, model: str) -> str:
    """Return the table that analysts read."""
    return f"{lake_root}/{model}"


def staging_path(lake_root: str, model: str, version: int) -> str:
    """Return the table of a rebuild that is not promoted yet."""
    return f"{lake_root}/_staging/{model}/v{version}"


def verified_path(lake_root: str, model: str, version: int) -> str:
    """Return the table of a version's verified records, from which incremental quality checks of Spark go on."""
    return f"{lake_root}/_verified/{model}/v{version}"


def verified_file(lake_root: str, model: str, version: int) -> str:
    """Return the file of a version's verified records, from which incremental quality checks of DuckDB go on."""
    return f"{verified_path(lake_root, model, version)}.parquet"


def proof_file(lake_root: str, event_table: str) -> str:
    """Return the file that says up to where an event table is proved against the log."""
    return f"{lake_root}/_verified/{event_table}.json"


def quality_path(lake_root: str) -> str:
    """Return the table of the quality checks' results."""
    return f"{lake_root}/_quality"


def table_fields(model: ReadModel) -> tuple[StateField, ...]:
    """Return the columns of a read model's table: its key, every field of any fold revision, the position."""
    return (StateField(KEY_COLUMN, "string", model.key_doc), *model.state, *POSITION_FIELDS)


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
