"""A rebuild's plan and a rollback's are exact lists of stages, made from the record and the request alone."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from include.rebuild.plan import (
    Approve,
    BuildStaging,
    CatchUp,
    HandOver,
    Hydrate,
    Promote,
    PromoteLake,
    RegisterCandidate,
    Retire,
    RollBack,
    Verify,
    described,
    rebuild_plan,
    rollback_plan,
)
from include.rebuild.request import RebuildRequest, RollbackRequest
from include.versions.registry import ReadModelVersions, first_version
from include.versions.transitions import NothingToRollBackToError, abandon, hand_over, promote, register

NOW = datetime(2026, 5, 1, tzinfo=UTC)
REQUEST = RebuildRequest("balance", "1 % bonus", fold_revision=2, approve=True, grace_h=24.0)
FIRST = first_version("balance", 1)


def two_versions() -> ReadModelVersions:
    building = register(FIRST, run_id="run-a", reason="", fold_revision=1, now=NOW)
    return promote(hand_over(building, 2), 2, now=NOW, retire_live_after=NOW)


def test_rebuild_of_a_first_version() -> None:
    assert rebuild_plan(FIRST, REQUEST) == (
        RegisterCandidate("balance", 2, 2, "1 % bonus"),
        CatchUp("balance", 2),
        BuildStaging("balance", 2),
        Verify("balance", 2),
        HandOver("balance", 2),
        Hydrate("balance", 2),
        Approve("balance", 2),
        Promote("balance", 2, 24.0),
        PromoteLake("balance", 2),
        Retire("balance", 1, 24.0),
    )


def test_rebuild_that_is_promoted_when_proved_asks_nobody() -> None:
    plan = rebuild_plan(FIRST, replace(REQUEST, approve=False))
    assert [stage.name for stage in plan] == [
        "register_candidate",
        "catch_up",
        "build_staging",
        "verify",
        "hand_over",
        "hydrate",
        "promote",
        "promote_lake",
        "retire",
    ]


def test_rebuild_passes_over_the_number_of_an_abandoned_version() -> None:
    record = abandon(register(FIRST, run_id="run-a", reason="", fold_revision=1, now=NOW), 2)
    assert {stage.version for stage in rebuild_plan(record, REQUEST)} == {3, 1}


def test_rebuild_retires_what_was_live() -> None:
    assert rebuild_plan(two_versions(), REQUEST)[-1] == Retire("balance", 2, 24.0)


def test_stages_of_one_step_may_run_side_by_side() -> None:
    plan = rebuild_plan(FIRST, REQUEST)
    assert [stage.step for stage in plan] == sorted(stage.step for stage in plan)
    assert [stage.name for stage in plan if stage.step == CatchUp.step] == ["catch_up", "build_staging"]


def test_rollback_to_the_version_replaced_last_or_to_the_one_named() -> None:
    record = two_versions()
    assert rollback_plan(record, RollbackRequest("balance", None, "")) == (
        RollBack("balance", 1),
        PromoteLake("balance", 1),
    )
    assert rollback_plan(record, RollbackRequest("balance", 2, ""))[0] == RollBack("balance", 2)


def test_rollback_without_a_previous_version_is_refused() -> None:
    with pytest.raises(NothingToRollBackToError):
        rollback_plan(FIRST, RollbackRequest("balance", None, ""))


def test_plan_is_described_a_line_a_stage() -> None:
    lines = described(rebuild_plan(FIRST, REQUEST)).splitlines()
    assert len(lines) == 10
    assert (
        lines[1]
        == "catch_up            v2  Fold the version's changelog from the first event, with the stream's own query."
    )
