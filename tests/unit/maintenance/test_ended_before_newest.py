"""The version registry lists the newest ended versions only; a version that it no longer lists has ended."""

from dataclasses import replace

import pytest

from include.maintenance import ended_before_newest, forget
from include.versions.version_record import ReadModelVersions, Stage, Version, first_version


def record(*stages: Stage) -> ReadModelVersions:
    """Return a record with versions 1, 2, ... in these stages."""
    first = first_version("balance", 1)
    (version,) = first.versions
    versions = tuple(
        replace(version, number=number, stage=stage, reason="r") for number, stage in enumerate(stages, 1)
    )
    return replace(first, versions=versions)


RECORD = record(Stage.RETIRED, Stage.ABANDONED, Stage.PREVIOUS, Stage.RETIRED, Stage.LIVE, Stage.ABANDONED)


@pytest.mark.parametrize(("kept", "numbers"), [(0, [1, 2, 4]), (1, [1, 2]), (2, [1]), (3, []), (100, [])])
def test_the_newest_ended_versions_are_kept(kept: int, numbers: list[int]) -> None:
    assert ended_before_newest(RECORD, kept) == numbers


def test_only_ended_versions_are_forgotten() -> None:
    left = forget(RECORD, range(1, 7))

    # The last one stays, because the next number follows it.
    assert [version.number for version in left.versions] == [3, 5, 6]


def test_forgetting_is_idempotent() -> None:
    left = forget(RECORD, {1, 2})

    assert forget(left, {1, 2}) is left


def test_a_forgotten_version_has_ended() -> None:
    left = forget(RECORD, {1, 2, 4})

    assert [left.stage_of(number) for number in range(8)] == [
        None,
        Stage.RETIRED,
        Stage.RETIRED,
        Stage.PREVIOUS,
        Stage.RETIRED,
        Stage.LIVE,
        Stage.ABANDONED,
        None,
    ]


def test_the_record_of_a_thousand_rebuilds_fits_into_a_message() -> None:
    version = Version(1, Stage.RETIRED, 1, "balance.v1000.changelog", "r" * 500, "2026-01-01T00:00:00+00:00")
    stages = [replace(version, number=number, run_id="r" * 60) for number in range(1, 1_001)]
    long = replace(RECORD, versions=(*stages, replace(version, number=1_001, stage=Stage.LIVE)))

    assert len(long.to_json()) > 700_000
    assert len(forget(long, ended_before_newest(long, 100)).to_json()) < 100_000
