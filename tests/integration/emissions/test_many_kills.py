"""An emission writes each record once with many kills: under load, between handovers, and at every stage of a rebuild."""

import os
import time
from collections.abc import Sequence
from functools import partial

import pytest

from include.kafka.log_reading import end_offsets, log_consumer
from include.rebuild.retirement import retire_version
from include.settings import Settings
from include.versions.registry import VersionRegistry
from include.versions.transitions import promote, roll_back
from include.versions.version_record import Stage, Version
from tests.integration.emissions.receipts import (
    EMISSION,
    EVENTS_PER_ROUND,
    Deposits,
    Load,
    change_versions,
    decoded,
    moves,
    require_exact,
    start_candidate,
    wait_for_more,
    written,
)
from tests.support.stream_process import records_of
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.endurance, pytest.mark.timeout(3600)]

MANY_KILLS = int(os.environ.get("FOLDLAKE_TEST_KILLS", "20"))
# Longer than the commit interval of the tests, so that some kills come after a note of what is written.
LONGEST_RUN_S = 24.0
# While the candidate catches up, while it keeps up, at its promotion, and while it takes the consumers' topic over.
KILLS_PER_REBUILD = 4
OTHER_REVISION = {1: 2, 2: 1}


def test_each_event_is_emitted_once_under_load(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    deposits.append(EVENTS_PER_ROUND)
    with Load(deposits):
        for kill in range(MANY_KILLS):
            driver.ensure_running()
            wait_for_more(settings, written(settings))
            time.sleep(LONGEST_RUN_S * kill / MANY_KILLS)
            driver.kill()
    driver.ensure_running()
    require_exact(settings, deposits, {1, 2})


def test_a_rebuild_repeats_no_side_effect_however_often_it_is_killed(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    driver.ensure_running()
    deposits.append(EVENTS_PER_ROUND)
    require_exact(settings, deposits, {1, 2})
    rebuilds = max(1, MANY_KILLS // KILLS_PER_REBUILD)
    with Load(deposits):
        for rebuild in range(rebuilds):
            retire_replaced(settings)
            rebuild_with_kills(settings, driver, deposits, LONGEST_RUN_S * rebuild / rebuilds)
    require_exact(settings, deposits, {1, 2})


def rebuild_with_kills(settings: Settings, driver: SharedDriver, deposits: Deposits, delay_s: float) -> None:
    """Promote a version with the other fold revision, and kill the driver at each stage, later by this delay where that can vary."""
    old = live_version(settings).fold_revision
    new = OTHER_REVISION[old]
    begin = ends(settings)
    number = start_candidate(settings, new)
    own = EMISSION.version_topic(number)

    driver.ensure_running()
    wait_until(partial(has_more, settings, own, 0), "the candidate catches up", timeout_s=180)
    driver.kill()

    driver.ensure_running()
    wait_until(partial(has_more, settings, own, len(deposits.expected)), "the candidate keeps up")
    time.sleep(delay_s)
    driver.kill()
    assert {revision for found in revisions_since(settings, begin) for revision in found} == {old}, (
        "a candidate must not emit to the consumers"
    )

    driver.ensure_running()
    wait_for_more(settings, written(settings))
    change_versions(settings, moves(promote, number))
    time.sleep(delay_s)
    driver.kill()

    driver.ensure_running()
    wait_for_more(settings, written(settings))
    driver.kill()

    driver.ensure_running()
    wait_until(partial(is_handed_over, settings, begin, new), "the candidate emits to the consumers")
    for found in revisions_since(settings, begin):
        first = found.index(new)
        assert set(found[:first]) <= {old}
        assert set(found[first:]) == {new}, "after the handover, only the new version emits"


def test_handovers_are_exact_under_load(settings: Settings, driver: SharedDriver, deposits: Deposits) -> None:
    driver.ensure_running()
    wait_until(lambda: written(settings) > 0, "receipts are written", timeout_s=120)
    retire_replaced(settings)
    old = live_version(settings)
    number = start_candidate(settings, OTHER_REVISION[old.fold_revision])
    change_versions(settings, moves(promote, number))
    with Load(deposits):
        for kill in range(MANY_KILLS):
            change_versions(settings, moves(roll_back, (old.number, number)[kill % 2]))
            driver.ensure_running()
            time.sleep(LONGEST_RUN_S * (1 + kill) / MANY_KILLS + 20)
            driver.kill()
    driver.ensure_running()
    require_exact(settings, deposits, {1, 2})


def live_version(settings: Settings) -> Version:
    with VersionRegistry(settings.kafka_connection) as registry:
        live = registry.read()["savings"].live
    assert live is not None
    return live


def retire_replaced(settings: Settings) -> None:
    """Retire every version that was live before."""
    with VersionRegistry(settings.kafka_connection) as registry:
        versions = registry.read()["savings"].versions
    for version in versions:
        if version.stage is Stage.PREVIOUS:
            retire_version(settings, "savings", version.number)


def ends(settings: Settings) -> Sequence[int]:
    """Return the end offset of each partition of the consumers' topic."""
    consumer = log_consumer(settings.kafka_connection)
    try:
        return end_offsets(consumer, EMISSION.output_topic, EMISSION.output_partitions(settings.topics))
    finally:
        consumer.close()


def has_more(settings: Settings, topic: str, count: int) -> bool:
    return written(settings, topic) > count


def revisions_since(settings: Settings, begin: Sequence[int]) -> list[list[int]]:
    """Return the fold revision of each receipt for consumers from these offsets on, for each partition in order."""
    found: list[list[int]] = [[] for _ in begin]
    for message in records_of(settings, EMISSION.output_topic):
        partition = message.partition() or 0
        if (message.offset() or 0) >= begin[partition]:
            found[partition].append(int(str(decoded(message)["revision"])))
    return found


def is_handed_over(settings: Settings, begin: Sequence[int], revision: int) -> bool:
    """Whether the newest receipt of each partition is of this revision."""
    return all(found[-1:] == [revision] for found in revisions_since(settings, begin))
