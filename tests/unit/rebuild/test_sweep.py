"""The sweep continues past a version that cannot be cleaned up, and names it at the end."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from include.rebuild import retirement
from include.rebuild.errors import CleanUpIncompleteError
from include.rebuild.version_cleanup import StorageUnreachableError, remove_staging
from include.settings import Settings
from include.versions.registry import VersionRegistry
from include.versions.transitions import hand_over, promote, register
from include.versions.version_lock import VersionLockedError
from include.versions.version_record import ReadModelVersions, first_version

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def promoted_twice(name: str) -> ReadModelVersions:
    record = first_version(name, 1)
    for number in (2, 3):
        record = register(record, run_id=f"run-{number}", reason="", fold_revision=1, now=NOW)
        record = promote(hand_over(record, number), number, now=NOW, retire_live_after=NOW)
    return record


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    records = {name: promoted_twice(name) for name in ("balance", "orders")}
    monkeypatch.setattr(VersionRegistry, "read", lambda _registry: records)
    return Settings.of(home=tmp_path, kafka_bootstrap="127.0.0.1:1")


def has_ended(_run_id: str) -> bool:
    return True


def test_locked_version_does_not_block_the_others(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    retired: list[str] = []

    def retire(_settings: Settings, read_model: str, number: int) -> None:
        if (read_model, number) == ("balance", 1):
            raise VersionLockedError("v1 of balance is still being written")
        retired.append(f"{read_model} v{number}")

    monkeypatch.setattr(retirement, "retire_version", retire)
    sweep: Callable[[], list[str]] = lambda: retirement.sweep(settings, has_ended)  # noqa: E731

    with pytest.raises(
        CleanUpIncompleteError,
        match=r"1 of the versions that are due could not be cleaned up.*v1 of balance is still being written",
    ):
        sweep()

    assert retired == ["balance v2", "orders v1", "orders v2"]


def test_error_names_a_file_system_that_only_spark_can_access(settings: Settings) -> None:
    there = settings.changed(lake_dir="gopher://somewhere/lake")
    with pytest.raises(StorageUnreachableError, match=r"gopher://somewhere/lake.*Remove them manually"):
        remove_staging(there.lake_root, "balance", 2)
