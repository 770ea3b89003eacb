"""The registry forgets ended versions of which nothing is left, except the newest ones; the next number does not change."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from include.maintenance import forget_ended_versions
from include.rebuild.retirement import sweep
from include.settings import Settings
from include.stream.checkpoints import checkpoint_path
from include.versions.registry import VersionRegistry
from include.versions.transitions import register
from include.versions.version_lock import lock_path
from include.versions.version_record import ReadModelVersions, Stage, first_version
from tests.support.temporary_stack import sharing_servers

MODEL = "ended-test"
STAGES = (Stage.RETIRED, Stage.ABANDONED, Stage.RETIRED, Stage.PREVIOUS, Stage.RETIRED, Stage.LIVE)
IN_USE = (4, 6)


@pytest.fixture(scope="module")
def home(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """Settings of a home with versions in each stage; a killed removal has left the checkpoint of version 2."""
    with sharing_servers(servers, keep_home) as settings:
        first = first_version(MODEL, 1)
        (version,) = first.versions
        versions = tuple(
            replace(version, number=number, stage=stage, changelog_topic=f"{MODEL}.v{number}.changelog")
            for number, stage in enumerate(STAGES, 1)
        )
        with VersionRegistry(settings.kafka_connection) as registry:
            registry.ensure_topic()
            registry.compare_and_set(replace(first, versions=versions), 0)
        for each in versions:
            lock = lock_path(settings.home, MODEL, each.number)
            lock.parent.mkdir(parents=True, exist_ok=True)
            lock.touch()
        for number in (2, *IN_USE):
            Path(checkpoint_path(settings.checkpoints, MODEL, number)).mkdir(parents=True)
        yield settings


def record(settings: Settings) -> ReadModelVersions:
    with VersionRegistry(settings.kafka_connection) as registry:
        return registry.read()[MODEL]


def numbers(settings: Settings) -> list[int]:
    return [version.number for version in record(settings).versions]


def locks(settings: Settings) -> list[str]:
    return sorted(path.stem for path in lock_path(settings.home, MODEL, 1).parent.iterdir())


def test_a_version_with_leftovers_stays_until_these_are_removed(home: Settings) -> None:
    assert forget_ended_versions(home, kept=1) == [
        f"2 ended versions of {MODEL}, up to v3: 4 versions are left in the registry"
    ]
    assert numbers(home) == [2, 4, 5, 6]
    assert locks(home) == ["v2", "v4", "v5", "v6"]

    sweep(home, lambda _run_id: True)
    forget_ended_versions(home, kept=1)

    assert numbers(home) == [4, 5, 6]


def test_what_is_in_use_is_never_touched(home: Settings) -> None:
    forget_ended_versions(home, kept=0)

    assert numbers(home) == list(IN_USE)
    assert all(Path(checkpoint_path(home.checkpoints, MODEL, number)).is_dir() for number in IN_USE)
    assert locks(home) == [f"v{number}" for number in IN_USE]


def test_a_repeated_maintenance_changes_nothing(home: Settings) -> None:
    before = record(home)

    assert forget_ended_versions(home, kept=0) == []
    assert record(home) == before


def test_numbers_are_not_used_again(home: Settings) -> None:
    grown = register(record(home), run_id="next", reason="", fold_revision=1, now=datetime.now(UTC))

    assert grown.versions[-1].number == len(STAGES) + 1
