"""Handovers between versions of a routed topic are exact with many kills, at every moment of a handover."""

import os
import time

import pytest

from include.settings import Settings
from include.versions.transitions import promote, roll_back
from tests.integration.emissions.receipts import Deposits, Load, moves
from tests.integration.route_versions.region_receipts import (
    EMISSION,
    TIMEOUT_S,
    change_versions,
    receipts,
    require_exact,
    start_candidate,
    wait_for_rule,
)
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.endurance, pytest.mark.timeout(3600)]

MANY_KILLS = int(os.environ.get("FOLDLAKE_TEST_KILLS", "20"))
# From before the version has caught up until after it has taken the consumers' topic over.
SHORTEST_RUN_S, LONGEST_RUN_S = 15.0, 60.0
EVENTS = 2_000


def test_handovers_between_source_topics_are_exact_under_load(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    driver.ensure_running()
    deposits.append(EVENTS)
    number = start_candidate(settings, rule=2)
    own = EMISSION.version_topic(number)
    wait_until(lambda: bool(receipts(settings, own)), "the candidate emits", timeout_s=TIMEOUT_S)
    live = number
    change_versions(settings, moves(promote, live))
    with Load(deposits):
        for kill in range(MANY_KILLS):
            driver.ensure_running()
            # Every third kill is while the version takes over, and another version becomes live before that is complete.
            if kill % 3 == 1:
                wait_for_rule(settings, 1 if live == 1 else 2)
            else:
                time.sleep(SHORTEST_RUN_S + (LONGEST_RUN_S - SHORTEST_RUN_S) * kill / MANY_KILLS)
            driver.kill()
            if kill % 3 != 0:
                live = 1 if live != 1 else number
                change_versions(settings, moves(roll_back, live))
    driver.ensure_running()
    require_exact(settings, deposits.count)
    rules = {receipt.rule for _, receipt in receipts(settings)}
    assert rules == {1, 2}
