"""How long a check waits for a table that contains another version than the live one."""

from datetime import UTC, datetime, timedelta

import pytest

from spark_jobs.quality.check_setup import LAKE_FOLLOWS_WITHIN_S, _wait_limit_s

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
WAIT_S = 60.0


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
    assert _wait_limit_s(live_since, WAIT_S, NOW) == expected_s
