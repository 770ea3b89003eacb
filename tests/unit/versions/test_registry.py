"""A record of the version registry survives a round trip as JSON, and returns its live, candidate and active versions."""

from dataclasses import replace

from include.versions.version_record import ReadModelVersions, Stage, Version, first_version


def version(number: int, stage: Stage) -> Version:
    return Version(number, stage, 1, f"balance.v{number}.changelog", "test", "2026-01-01T00:00:00+00:00")


RECORD = replace(
    first_version("balance", fold_revision=1),
    versions=(
        version(1, Stage.RETIRED),
        version(2, Stage.PREVIOUS),
        version(3, Stage.LIVE),
        version(4, Stage.CANDIDATE),
        version(5, Stage.ABANDONED),
    ),
)


def test_record_is_the_same_after_a_round_trip() -> None:
    assert ReadModelVersions.from_json(RECORD.to_json()) == RECORD


def test_live_candidate_and_active_versions() -> None:
    assert RECORD.live == version(3, Stage.LIVE)
    assert RECORD.candidate == version(4, Stage.CANDIDATE)
    assert [v.number for v in RECORD.active] == [2, 3, 4]


def test_read_model_starts_with_version_one_live() -> None:
    record = first_version("balance", fold_revision=7)
    assert record.live is not None
    assert (record.live.number, record.live.fold_revision) == (1, 7)
    assert record.live.changelog_topic == "balance.v1.changelog"
    assert record.candidate is None
