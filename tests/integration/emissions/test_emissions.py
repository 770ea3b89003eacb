"""An emission writes one record for each event with the state after it, once and in order, whatever is killed or promoted."""

import time

from include.rebuild.retirement import retire_version
from include.rebuild.version_cleanup import find_leftovers
from include.settings import Settings
from include.status.flow_status import FlowKind
from include.status.measurement import read_stream_status
from include.versions.registry import VersionRegistry
from include.versions.transitions import promote, roll_back
from tests.integration.emissions.receipts import (
    CANDIDATE,
    EMISSION,
    EVENTS_PER_ROUND,
    FIRST,
    Deposits,
    Load,
    change_versions,
    moves,
    receipts,
    require_exact,
    start_candidate,
    wait_for_more,
    wait_for_revision,
    written,
)
from tests.support.stream_process import records_of
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until


def test_each_event_is_emitted_once_with_the_state_after_it(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    deposits.append(EVENTS_PER_ROUND)
    driver.ensure_running()
    wait_for_more(settings, written(settings))
    deposits.append(EVENTS_PER_ROUND)
    driver.kill()
    deposits.append(EVENTS_PER_ROUND)
    driver.ensure_running()
    require_exact(settings, deposits, {FIRST})


def test_status_shows_an_emission(settings: Settings, driver: SharedDriver, deposits: Deposits) -> None:
    driver.ensure_running()
    deposits.append(10)

    def is_current() -> bool:
        (emission,) = read_stream_status(settings).of_kind(FlowKind.EMISSION)
        assert (emission.name, emission.version, emission.output_topic) == ("receipts", 1, "receipts")
        return (emission.events_behind, emission.records) == (0, len(deposits.expected))

    wait_until(is_current, "the emission has caught up", timeout_s=120)


def test_a_promotion_and_a_rollback_hand_the_consumers_topic_over_exactly(
    settings: Settings, driver: SharedDriver, deposits: Deposits
) -> None:
    driver.ensure_running()
    start_candidate(settings)
    own = EMISSION.version_topic(2)
    deposits.append(EVENTS_PER_ROUND)
    wait_until(lambda: written(settings, own) >= len(deposits.expected), "the candidate emits", timeout_s=240)
    assert {record["revision"] for record in receipts(settings)} == {FIRST}, (
        "a candidate must not emit to the consumers"
    )
    with Load(deposits):
        time.sleep(1)
        change_versions(settings, moves(promote, 2))
        wait_for_revision(settings, CANDIDATE)
        driver.kill()
        driver.ensure_running()
        change_versions(settings, moves(roll_back, 1))
        wait_for_revision(settings, FIRST)
    require_exact(settings, deposits, {1, 2})
    # The version topic has every event at least up to the promotion, with its own revision only.
    assert {record["revision"] for record in receipts(settings, own)} == {CANDIDATE}


def test_a_retired_version_leaves_nothing_of_its_emissions(settings: Settings, driver: SharedDriver) -> None:
    driver.ensure_running()
    checkpoint = settings.home / "checkpoints" / "emission" / EMISSION.name / "v2"
    assert checkpoint.is_dir()
    with VersionRegistry(settings.kafka_connection) as registry:
        live = registry.read()["savings"].live
    assert live is not None
    assert live.number == 1

    retire_version(settings, "savings", 2)

    assert find_leftovers(settings, "savings", 2) == []
    assert not checkpoint.exists()
    assert not records_of(settings, EMISSION.version_topic(2))
    assert records_of(settings, EMISSION.output_topic)
