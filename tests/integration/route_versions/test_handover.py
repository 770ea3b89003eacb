"""Consumers receive each event once when a version that folds another version of the routed topic becomes live, and when it is rolled back."""

import time

import pytest

from include.rebuild.retirement import retire_version
from include.rebuild.version_cleanup import find_leftovers
from include.settings import Settings
from include.versions.transitions import promote, roll_back
from tests.integration.emissions.receipts import Deposits, Load, moves
from tests.integration.route_versions.region_receipts import (
    EMISSION,
    READ_MODEL,
    TIMEOUT_S,
    change_versions,
    numbers,
    only_by,
    receipts,
    require_exact,
    start_candidate,
    wait_for_all,
    wait_for_rule,
)
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

pytestmark = pytest.mark.endurance

EVENTS = 2_000


def test_a_promotion_and_a_rollback_to_another_source_topic_are_exact(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    driver.ensure_running()
    deposits.append(EVENTS)
    number = start_candidate(settings, rule=2)
    assert number == 2
    by_first = set(range(1, deposits.count + 1))
    wait_for_all(settings, 1, by_first)
    own = EMISSION.version_topic(2)
    wait_until(lambda: bool(receipts(settings, own)), "the candidate emits", timeout_s=TIMEOUT_S)

    with Load(deposits):
        time.sleep(2)
        change_versions(settings, moves(promote, 2))
        time.sleep(3)
        driver.kill()
        driver.ensure_running()
        wait_for_rule(settings, 2)
        driver.kill()
    driver.ensure_running()
    before = deposits.count
    deposits.append(EVENTS)
    by_second = set(range(before + 1, deposits.count + 1))
    wait_for_all(settings, 2, by_second)
    require_exact(settings, deposits.count)

    with Load(deposits):
        time.sleep(2)
        change_versions(settings, moves(roll_back, 1))
        wait_for_rule(settings, 1)
        driver.kill()
    driver.ensure_running()
    before = deposits.count
    deposits.append(EVENTS)
    by_first |= set(range(before + 1, deposits.count + 1))
    wait_for_all(settings, 1, by_first)
    require_exact(settings, deposits.count)
    found = set(numbers(settings))
    assert only_by(2, by_second) <= found
    assert not only_by(1, by_second) & found
    assert only_by(1, by_first) <= found
    assert not only_by(2, by_first) & found


def test_a_retired_version_leaves_the_files_of_the_consumers_topic(
    settings: Settings, driver: SharedDriver
) -> None:
    driver.ensure_running()
    retire_version(settings, READ_MODEL, 2)
    assert find_leftovers(settings, READ_MODEL, 2) == []
    folder = settings.home / "checkpoints" / "emission" / EMISSION.name
    assert not [path.name for path in folder.iterdir() if path.name.startswith(("v2", ".v2"))]
    assert (folder / "v0.writer").is_file()
    assert (folder / "v0.regional-deposits.v2.written").is_file()
