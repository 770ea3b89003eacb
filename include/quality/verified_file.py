"""How far a read model's stores are verified, published in a small file for status, metrics and Airflow."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from include.files import write_atomically
from include.lake.tags import from_fields
from include.quality.verified_tag import VerifiedMark


@dataclass(frozen=True)
class VerifiedStores:
    """How far the stores of a read model's version are verified, by store."""

    read_model: str
    version: int
    stores: Mapping[str, VerifiedMark]


def verified_directory(home: Path) -> Path:
    """Return the folder of the files, one for each read model."""
    return home / "verified"


def write(home: Path, found: VerifiedStores) -> None:
    """Replace the file of a read model atomically; stores of the same version that a check has left out keep their entry."""
    before = read(home, found.read_model)
    if before is not None and before.version == found.version:
        found = VerifiedStores(found.read_model, found.version, {**before.stores, **found.stores})
    path = verified_directory(home) / f"{found.read_model}.json"
    write_atomically(path, json.dumps(asdict(found), indent=1))


def confirm(home: Path, found: VerifiedStores, cut_at_s: float) -> None:
    """Publish that the log had no event after these stores' offsets at a time (Unix s)."""
    stores = {name: replace(mark, cut_at_s=cut_at_s) for name, mark in found.stores.items()}
    write(home, replace(found, stores=stores))


def read(home: Path, read_model: str) -> VerifiedStores | None:
    """Return how far a read model's stores are verified; None before a check has passed that kept its records."""
    return _read(verified_directory(home) / f"{read_model}.json")


def read_all(home: Path) -> list[VerifiedStores]:
    """Return how far the stores of all read models are verified."""
    found = (_read(path) for path in sorted(verified_directory(home).glob("*.json")))
    return [one for one in found if one is not None]


def _read(path: Path) -> VerifiedStores | None:
    try:
        return from_fields(VerifiedStores, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        # Absent, or written by another release.
        return None
