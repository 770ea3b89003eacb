"""Files by which a driver passes its folds to a new driver, one after the other, while both run.

The stream supervisor begins it. Each fold has a lock (include/versions/version_lock.py): the present driver releases it and lists the fold as
passed, and the new one starts it. When all are passed, the present driver ends with HANDED_OVER, and the new one gets the driver's lock.
A lock alone would not do: the Python process of a driver holds it, and its JVM may outlive that by a moment.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from include.files import write_atomically
from include.unknown_fields import read_record

# The exit status of a driver that has passed its folds.
HANDED_OVER = 3


@dataclass(frozen=True)
class QueryTransfer:
    """The drivers, by the ids of their JVMs."""

    from_pid: int
    to_pid: int


@dataclass(frozen=True)
class PassedFolds(QueryTransfer):
    """A transfer, and the names of the queries that have been passed."""

    names: list[str]


def begin(home: Path, transfer: QueryTransfer) -> None:
    """Have the folds passed. Only the stream supervisor may call this."""
    write_atomically(_path(home), json.dumps(asdict(transfer)))


def end(home: Path) -> None:
    """Have no more folds passed: the present driver takes back those that the new one no longer holds. Does nothing if none are passed."""
    for path in (_path(home), _passed_path(home)):
        path.unlink(missing_ok=True)


def read(home: Path) -> QueryTransfer | None:
    """Return what is under way; None if no folds are passed."""
    return read_record(QueryTransfer, _path(home))


def list_passed(home: Path, transfer: QueryTransfer, names: list[str]) -> None:
    """List the folds that the present driver has passed. Only that driver may call this."""
    write_atomically(_passed_path(home), json.dumps(asdict(transfer) | {"names": names}))


def passed(home: Path, transfer: QueryTransfer) -> frozenset[str]:
    """Return the names of the folds that are passed."""
    found = read_record(PassedFolds, _passed_path(home))
    is_of_transfer = found is not None and QueryTransfer(found.from_pid, found.to_pid) == transfer
    return frozenset(found.names) if found is not None and is_of_transfer else frozenset()


def _passed_path(home: Path) -> Path:
    return home / "stream" / "passed.json"


def _path(home: Path) -> Path:
    return home / "stream" / "transfer.json"
