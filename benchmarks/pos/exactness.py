"""The comparison of every branch with the oracle of the demo, which must succeed before a figure counts."""

from demo.log_tables import record_count
from demo.pos.branches import BRANCHES, Check
from include.settings import Settings
from tests.support.waiting import wait_until

TIMEOUT_S = 300.0


def require_exact(settings: Settings, check: Check) -> None:
    """Wait until every branch has written what it must; fail unless each record is there once, and right."""
    wait_until(
        lambda: all(record_count(settings, branch.output) >= check.expected(branch) for branch in BRANCHES),
        "every branch is written",
        TIMEOUT_S,
    )
    for branch in BRANCHES:
        result = check.compare(branch)
        assert result.is_exact, result
