"""Where a reset starts: the text of a rule, and what a shift means, as Kafka's own tool has it."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from include.kafka.topic_state import TopicState
from include.position import Offsets
from include.versions.start_rule import StartRule, StartRuleError

LOG = TopicState("id", ends=Offsets({0: 100, 1: 50}), starts=Offsets({0: 10, 1: 0}))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("earliest", StartRule()),
        ("shift-by -100", StartRule(shift_by=-100)),
        ("shift-by 7", StartRule(shift_by=7)),
        ("2026-11-01", StartRule(since=datetime(2026, 11, 1, tzinfo=UTC))),
        ("2026-11-01T12:00Z", StartRule(since=datetime(2026, 11, 1, 12, tzinfo=UTC))),
        (
            "2026-11-01T12:00+02:00",
            StartRule(since=datetime(2026, 11, 1, 12, tzinfo=timezone(timedelta(hours=2)))),
        ),
    ],
)
def test_a_rule_has_a_text(text: str, rule: StartRule) -> None:
    assert StartRule.parse(text) == rule
    assert StartRule.parse(str(rule)) == rule


@pytest.mark.parametrize("text", ["", "latest", "shift-by", "shift-by 1.5", "shift-by 1 2", "2026-13-01"])
def test_another_text_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(StartRuleError, match="allowed: `earliest`, a time such as"):
        StartRule.parse(text)


@pytest.mark.parametrize(
    ("shift_by", "live", "expected"),
    [
        # A version without a start begins at the first event that the log has.
        (5, Offsets(), {0: 15, 1: 5}),
        (5, Offsets({0: 20, 1: 30}), {0: 25, 1: 35}),
        (-12, Offsets({0: 20, 1: 30}), {0: 10, 1: 18}),
        (60, Offsets({0: 20, 1: 30}), {0: 80, 1: 50}),
    ],
)
def test_a_shift_is_relative_to_the_live_version_and_stays_within_the_log(
    shift_by: int, live: Offsets, expected: dict[int, int]
) -> None:
    assert StartRule(shift_by=shift_by).shifted(LOG, live) == expected
