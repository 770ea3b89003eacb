"""How versions may change: each transition returns the exact next record, is idempotent, and rejects other changes with its own error."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from include.position import Offsets
from include.versions.transitions import (
    NotHandedOverError,
    NothingToRollBackToError,
    RebuildRunningError,
    UnknownVersionError,
    VersionAbandonedError,
    VersionChangeError,
    VersionInUseError,
    VersionRetiredError,
    abandon,
    hand_over,
    promote,
    register,
    retire,
    roll_back,
    rollback_target,
)
from include.versions.version_record import ReadModelVersions, Stage, Version, first_version

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=24)


def registered(record: ReadModelVersions, run_id: str = "run-a") -> ReadModelVersions:
    return register(record, run_id=run_id, reason="1 % bonus", fold_revision=2, now=NOW)


def stages(record: ReadModelVersions) -> dict[int, str]:
    return {v.number: v.stage.value for v in record.versions}


FIRST = first_version("balance", fold_revision=1)
BUILDING = registered(FIRST)
CANDIDATE = hand_over(BUILDING, 2)
PROMOTED = promote(CANDIDATE, 2, now=NOW, retire_live_after=LATER)
ROLLED_BACK = roll_back(PROMOTED, 1, now=NOW, retire_live_after=LATER)
RETIRED = retire(PROMOTED, 1)
ABANDONED = abandon(CANDIDATE, 2)


def test_versions_go_through_their_stages() -> None:
    assert stages(BUILDING) == {1: "live", 2: "building"}
    assert stages(CANDIDATE) == {1: "live", 2: "candidate"}
    assert stages(PROMOTED) == {1: "previous", 2: "live"}
    assert stages(ROLLED_BACK) == {1: "live", 2: "previous"}
    assert stages(RETIRED) == {1: "retired", 2: "live"}
    assert stages(ABANDONED) == {1: "live", 2: "abandoned"}


def test_a_rollback_stores_its_reason_with_the_version() -> None:
    record = roll_back(PROMOTED, 1, now=NOW, retire_live_after=LATER, reason="the bonus was wrong")

    first, second = record.versions
    assert (first.rollback_reason, second.rollback_reason) == ("the bonus was wrong", "")
    assert first.reason == "first start"
    # A version that became live in the meantime keeps its own.
    assert roll_back(record, 1, now=NOW, retire_live_after=LATER, reason="again") is record
    assert ReadModelVersions.from_json(record.to_json()) == record


def test_registered_version_has_run_reason_and_fold_revision() -> None:
    version = BUILDING.version(2)
    assert version is not None
    assert (version.fold_revision, version.reason, version.run_id) == (2, "1 % bonus", "run-a")
    assert version.changelog_topic == "balance.v2.changelog"
    assert version.created_at == NOW.isoformat()
    assert not version.is_active


def test_replaced_version_is_kept_until_its_grace_time_is_over() -> None:
    version = PROMOTED.version(1)
    assert version is not None
    assert version.retire_after == LATER.isoformat()
    assert version.grace_s == (LATER - NOW).total_seconds()


def test_version_that_becomes_live_again_has_no_retirement_time() -> None:
    version = ROLLED_BACK.version(1)
    assert version is not None
    assert (version.retire_after, version.grace_s) == ("", None)


@pytest.mark.parametrize(
    ("record", "again"),
    [
        (BUILDING, registered),
        (CANDIDATE, registered),
        (PROMOTED, registered),
        (CANDIDATE, lambda r: hand_over(r, 2)),
        (PROMOTED, lambda r: hand_over(r, 2)),
        (PROMOTED, lambda r: promote(r, 2, now=NOW, retire_live_after=LATER)),
        (ROLLED_BACK, lambda r: roll_back(r, 1, now=NOW, retire_live_after=LATER)),
        (RETIRED, lambda r: retire(r, 1)),
        (ABANDONED, lambda r: abandon(r, 2)),
    ],
)
def test_repeated_transition_changes_nothing(
    record: ReadModelVersions, again: Callable[[ReadModelVersions], ReadModelVersions]
) -> None:
    assert again(record) is record


@pytest.mark.parametrize("record", [BUILDING, CANDIDATE])
def test_second_rebuild_is_refused_with_an_error_that_names_the_first(record: ReadModelVersions) -> None:
    with pytest.raises(RebuildRunningError, match=r"rebuild run-a is building v2 of balance \(1 % bonus\)"):
        registered(record, "run-b")


@pytest.mark.parametrize("record", [PROMOTED, ABANDONED, RETIRED])
def test_next_rebuild_gets_a_number_that_was_never_used(record: ReadModelVersions) -> None:
    assert stages(registered(record, "run-b"))[3] == "building"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda: registered(ABANDONED), VersionAbandonedError),
        (lambda: hand_over(ABANDONED, 2), VersionAbandonedError),
        (lambda: hand_over(RETIRED, 1), VersionRetiredError),
        (lambda: promote(BUILDING, 2, now=NOW, retire_live_after=LATER), NotHandedOverError),
        (lambda: promote(ABANDONED, 2, now=NOW, retire_live_after=LATER), VersionAbandonedError),
        (lambda: promote(RETIRED, 1, now=NOW, retire_live_after=LATER), VersionRetiredError),
        (lambda: promote(PROMOTED, 1, now=NOW, retire_live_after=LATER), VersionInUseError),
        (lambda: promote(FIRST, 9, now=NOW, retire_live_after=LATER), UnknownVersionError),
        (lambda: roll_back(CANDIDATE, 2, now=NOW, retire_live_after=LATER), NotHandedOverError),
        (lambda: roll_back(RETIRED, 1, now=NOW, retire_live_after=LATER), VersionRetiredError),
        (lambda: roll_back(ABANDONED, 2, now=NOW, retire_live_after=LATER), VersionAbandonedError),
        (lambda: retire(FIRST, 1), VersionInUseError),
        (lambda: retire(CANDIDATE, 2), NotHandedOverError),
        (lambda: abandon(PROMOTED, 2), VersionInUseError),
        (lambda: abandon(PROMOTED, 1), VersionInUseError),
    ],
)
def test_invalid_transition_raises_its_own_error(
    change: Callable[[], ReadModelVersions], error: type[VersionChangeError]
) -> None:
    with pytest.raises(error):
        change()


def appended(record: ReadModelVersions) -> ReadModelVersions:
    """Return a record after a round trip through the registry's format."""
    return replace(record, revision=record.revision + 1)


def test_rollback_without_a_number_targets_the_version_replaced_last() -> None:
    assert rollback_target(PROMOTED).number == 1
    with pytest.raises(NothingToRollBackToError):
        rollback_target(FIRST)
    # Version 2 was wrong, so 1 came back; then 3 was promoted, and is wrong too.
    record = appended(roll_back(appended(PROMOTED), 1, now=NOW, retire_live_after=LATER))
    third = appended(hand_over(appended(registered(record, "run-b")), 3))
    record = appended(promote(third, 3, now=NOW, retire_live_after=LATER))
    assert rollback_target(record).number == 1
    for number, next_number in ((2, 3), (3, 2)):
        record = appended(roll_back(record, number, now=NOW, retire_live_after=LATER))
        assert rollback_target(record).number == next_number, "rolling back once more undoes it"


def test_live_version_has_the_time_it_became_live() -> None:
    assert [v.live_since for v in PROMOTED.versions] == ["", NOW.isoformat()]
    assert [v.live_since for v in ROLLED_BACK.versions] == [NOW.isoformat(), ""]


def test_records_written_before_rebuilds_existed_can_be_read() -> None:
    old = (
        b'{"read_model":"balance","revision":1,"versions":[{"number":1,"stage":"live","fold_revision":1,'
        b'"changelog_topic":"balance.v1.changelog","reason":"first start","created_at":"2026-01-01T00:00:00+00:00"}],'
        b'"updated_at":"2026-01-01T00:00:00+00:00"}'
    )
    record = ReadModelVersions.from_json(old)
    assert record.live is not None
    assert (record.live.run_id, record.live.retire_after, record.live.replaced_in) == ("", "", 0)


def test_only_one_version_is_live_after_any_promotion() -> None:
    for record in (PROMOTED, ROLLED_BACK, roll_back(ROLLED_BACK, 2, now=NOW, retire_live_after=LATER)):
        assert [v.stage for v in record.versions].count(Stage.LIVE) == 1


def test_transition_does_not_change_its_argument() -> None:
    before = replace(CANDIDATE)
    promote(CANDIDATE, 2, now=NOW, retire_live_after=LATER)
    assert before == CANDIDATE


def test_a_rebuild_folds_the_topic_of_the_live_version_unless_it_names_another() -> None:
    moved = register(
        FIRST, run_id="run", reason="r", fold_revision=1, now=NOW, source_topic="payments.v2"
    ).versions[-1]
    assert moved.source_topic == "payments.v2"

    live = replace(FIRST, versions=tuple(replace(v, source_topic="payments.v2") for v in FIRST.versions))
    again = register(live, run_id="other", reason="r", fold_revision=1, now=NOW)
    assert again.versions[-1].source_topic == "payments.v2"


def test_a_version_starts_where_the_live_one_does_unless_it_is_told_otherwise() -> None:
    starts = Offsets({0: 5, 1: 7})
    moved = register(FIRST, run_id="run-a", reason="", fold_revision=1, now=NOW, starts=starts)
    live = promote(hand_over(moved, 2), 2, now=NOW, retire_live_after=LATER)

    def third(source_topic: str | None = None, starts: Offsets | None = None) -> Version:
        changed = register(
            live, run_id="b", reason="", fold_revision=1, now=NOW, source_topic=source_topic, starts=starts
        )
        return changed.versions[-1]

    assert moved.versions[-1].starts == starts
    assert third().starts == starts
    assert third(starts=Offsets()).starts == Offsets()
    # The offsets of another topic are others.
    assert third(source_topic="balance.v2").starts == Offsets()


def test_starts_are_in_the_record_and_older_records_have_none() -> None:
    record = register(FIRST, run_id="a", reason="", fold_revision=1, now=NOW, starts=Offsets({0: 5, 1: 7}))
    assert ReadModelVersions.from_json(record.to_json()) == record

    older = json.loads(record.to_json())
    for version in older["versions"]:
        del version["start_offsets"]
    read = ReadModelVersions.from_json(json.dumps(older).encode())
    assert [version.starts for version in read.versions] == [Offsets(), Offsets()]
