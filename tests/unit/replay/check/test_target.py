"""How long a check waits for a table that contains another version than the live one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from include.position import Offsets
from include.quality.check import CheckRequest, Mode, StoreName
from include.read_models.balance.model import READ_MODEL
from include.replay.check.target import LAKE_FOLLOWS_WITHIN_S, CheckTarget
from include.settings import Settings
from include.versions.version_record import Stage, Version

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
WAIT_S = 60.0
REQUEST = CheckRequest("balance", (StoreName.LAKE,), Mode.FULL, "test")


def target(live_since: str) -> CheckTarget:
    version = Version(1, Stage.LIVE, 1, "balance.v1.changelog", "test", "", live_since=live_since)
    settings = Settings().changed(quality_wait_s=WAIT_S)
    return CheckTarget(settings, READ_MODEL, version, "", Offsets(), 0.0, {})


@pytest.mark.parametrize(
    ("live_since", "expected_s"),
    [
        ("", WAIT_S),
        (NOW.isoformat(), LAKE_FOLLOWS_WITHIN_S),
        ((NOW - timedelta(minutes=10)).isoformat(), LAKE_FOLLOWS_WITHIN_S - 600),
        ((NOW - timedelta(days=1)).isoformat(), WAIT_S),
        ((NOW + timedelta(days=1)).isoformat(), LAKE_FOLLOWS_WITHIN_S),
    ],
    ids=["of an earlier release", "just now", "ten minutes", "a day", "a clock that was set back"],
)
def test_the_wait_depends_on_when_the_version_became_live(live_since: str, expected_s: float) -> None:
    assert target(live_since).table_wait_s(REQUEST, NOW) == expected_s


def test_a_check_of_one_version_does_not_wait() -> None:
    assert target(NOW.isoformat()).table_wait_s(replace(REQUEST, version=1), NOW) == 0
