"""How far stores are verified is published by read model; a check of some stores leaves the entries of the others."""

from dataclasses import replace
from pathlib import Path

from include.quality import verified_stores
from include.quality.verified_stores import VerifiedStores
from tests.unit.quality.test_verified_tag import LAKE, NODES


def test_before_the_first_check_nothing_is_published(tmp_path: Path) -> None:
    assert verified_stores.read(tmp_path, "balance") is None
    assert verified_stores.read_all(tmp_path) == []


def test_stores_of_the_same_version_are_kept(tmp_path: Path) -> None:
    later = replace(NODES, cut_at_s=200.0)
    verified_stores.write(tmp_path, VerifiedStores("balance", 1, {"lake": LAKE, "nodes": NODES}))
    verified_stores.write(tmp_path, VerifiedStores("balance", 1, {"nodes": later}))

    assert verified_stores.read(tmp_path, "balance") == VerifiedStores(
        "balance", 1, {"lake": LAKE, "nodes": later}
    )


def test_stores_of_another_version_are_dropped(tmp_path: Path) -> None:
    verified_stores.write(tmp_path, VerifiedStores("balance", 1, {"lake": LAKE, "nodes": NODES}))
    verified_stores.write(tmp_path, VerifiedStores("balance", 2, {"nodes": NODES}))
    verified_stores.write(tmp_path, VerifiedStores("visits", 1, {"lake": LAKE}))

    assert verified_stores.read_all(tmp_path) == [
        VerifiedStores("balance", 2, {"nodes": NODES}),
        VerifiedStores("visits", 1, {"lake": LAKE}),
    ]


def test_stores_without_new_events_are_verified_up_to_now(tmp_path: Path) -> None:
    verified_stores.write(tmp_path, VerifiedStores("balance", 1, {"lake": LAKE, "nodes": NODES}))
    verified_stores.confirm(tmp_path, VerifiedStores("balance", 1, {"lake": LAKE, "nodes": NODES}), 300.0)

    stores = {"lake": replace(LAKE, cut_at_s=300.0), "nodes": replace(NODES, cut_at_s=300.0)}
    assert verified_stores.read(tmp_path, "balance") == VerifiedStores("balance", 1, stores)


def test_an_unreadable_file_is_none(tmp_path: Path) -> None:
    verified_stores.verified_directory(tmp_path).mkdir()
    (verified_stores.verified_directory(tmp_path) / "balance.json").write_text("{")

    assert verified_stores.read(tmp_path, "balance") is None
