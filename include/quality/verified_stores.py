"""How far a read model's stores are verified: published in a small file for status, metrics and Airflow, and compared with the log."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from include.declarations.read_model import ReadModel
from include.files import write_atomically
from include.lake.tables import table_path
from include.lake.tags import from_fields
from include.position import Offsets
from include.quality.check import StoreName
from include.quality.verified_tag import VerifiedMark, verified_by_all
from include.settings import Settings
from include.versions.registry import source_ends_if_known

SERVED = (StoreName.LAKE, StoreName.NODES)


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


@dataclass(frozen=True)
class VerifiedStatus:
    """How far one store of a read model is verified.

    events_behind: events after `verified_up_to`; None if Kafka does not respond. age_s: age of the oldest event that may not be
    verified, at most. full_age_s: since all keys were checked.
    """

    read_model: str
    version: int
    store: str
    verified_up_to: Offsets
    events_behind: int | None
    age_s: float
    full_age_s: float


def verified_statuses(
    settings: Settings, model: ReadModel, now_s: float, *, has_kafka: bool
) -> list[VerifiedStatus]:
    """Return how far the stores of a read model are verified at a time (Unix s); empty before the first check that passed.

    has_kafka: whether to ask Kafka for the number of events behind.
    """
    found = read(settings.home, model.name)
    if found is None:
        return []
    verified = verified_by_all(found.stores.values())
    kafka = settings.kafka_connection
    ends = source_ends_if_known(kafka, model, found.version, verified) if has_kafka else None
    return [
        VerifiedStatus(
            found.read_model,
            found.version,
            store,
            mark.verified_up_to,
            None if ends is None else mark.verified_up_to.events_until(ends),
            mark.age_s(now_s),
            mark.full_age_s(now_s),
        )
        for store, mark in found.stores.items()
    ]


def confirm_if_nothing_is_new(settings: Settings, model: ReadModel) -> bool:
    """Publish that lake and nodes are still verified up to the log's end, if they are; return whether they are."""
    from deltalake import DeltaTable  # noqa: PLC0415 - DAG files import this module, and are parsed repeatedly

    verified = read(settings.home, model.name)
    if verified is None or verified.stores.keys() != {str(store) for store in SERVED}:
        return False
    now_s = time.time()
    kafka, marks = settings.kafka_connection, verified.stores.values()
    ends = source_ends_if_known(kafka, model, verified.version)
    unread = source_ends_if_known(kafka, model, verified.version, verified_by_all(marks))
    table = DeltaTable(table_path(settings.lake_root, model.name))
    if (
        ends is None
        or unread is None
        or not all(ends.covers(m.verified_up_to) and m.verified_up_to.covers(unread) for m in marks)
        or verified.stores[str(StoreName.LAKE)].table_version != table.version()
    ):
        return False
    confirm(settings.home, verified, now_s)
    return True
