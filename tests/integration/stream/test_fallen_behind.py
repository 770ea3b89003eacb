"""A query that falls behind in real time folds in batches until it has kept up; every balance is exact at every pace."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from include.settings import Settings
from include.stream.checkpoints import checkpoint_path, query_name
from include.stream.pace import PACES
from include.stream.query_reports import Phase, query_status
from stack.launchers.stream_driver import running
from tests.integration.stream.conftest import PACED
from tests.support.stream_events import Ledger, random_event
from tests.support.stream_process import EventSource
from tests.support.unsupervised_driver import LogFile, SharedDriver, end, launch, log_path
from tests.support.waiting import wait_until

BACKLOG = 3_000
BURST = 10_000
# As many switches to batches, and at least half as many back.
KILLS = int(os.environ.get("FOLDLAKE_TEST_KILLS", "50"))
QUERY = query_name(PACED, 1)
CHANGELOG = f"{PACED}.v1.changelog"
# The changelog then has millions of records.
FOLDED_TIMEOUT_S = 600


def burst(source: EventSource, ledger: Ledger) -> Callable[[], None]:
    """Return a function that appends BURST events, faster than they can be folded: they are serialized here, and only once."""
    events = [random_event() for _ in range(BURST)]
    records = [(event.customerId.encode(), source.serializer.serialize(event)) for event in events]

    def append_again() -> None:
        for key, value in records:
            source.append_raw(key, value)
        source.flush()
        for event in events:
            ledger.add(event)

    return append_again


def append(source: EventSource, ledger: Ledger, events: int) -> None:
    for event in ledger.random_events(events):
        source.append_raw(event.customerId.encode(), source.serializer.serialize(event))
    source.flush()


def test_query_that_falls_behind_folds_in_batches_and_comes_back(
    paced: Settings, driver: SharedDriver, paced_source: EventSource, paced_ledger: Ledger
) -> None:
    driver.stop()
    log = LogFile(log_path(paced))
    # A query that waits for events would catch up first.
    driver.ensure_running(stream_pace="latency", stream_idle_interval_s=0)
    log.wait_for(f"{QUERY}: {Phase.REAL_TIME}")
    append_again = burst(paced_source, paced_ledger)
    log.wait_for(f"{QUERY}: {Phase.BATCHES} from now on", meanwhile=append_again)
    log.wait_for(f"{QUERY}: {Phase.REAL_TIME} from now on")
    append(paced_source, paced_ledger, BACKLOG)
    wait_until(lambda: paced_ledger.is_folded(paced, CHANGELOG), "all events are folded")
    paced_ledger.assert_exact(paced, CHANGELOG)
    status = query_status(paced.kafka_connection, PACED, 1)
    assert status is not None
    assert status.restarts == 0, status.last_error


@pytest.mark.endurance
def test_a_restart_in_real_time_applies_few_commits_to_a_snapshot(
    paced: Settings, driver: SharedDriver, paced_source: EventSource, paced_ledger: Ledger
) -> None:
    driver.ensure_running(stream_pace="balanced")
    state = Path(checkpoint_path(paced.checkpoints, PACED, 1)) / "state"

    def next_snapshot(after: int) -> int:
        """Return the version of the first snapshot of the state after this one, while events are folded."""

        def newest() -> int:
            append(paced_source, paced_ledger, 1)
            return max((int(path.name.split("_")[0]) for path in state.rglob("*.zip")), default=0)

        wait_until(lambda: newest() > after, f"a snapshot after version {after}", poll_s=1.0)
        return newest()

    first = next_snapshot(next_snapshot(0))

    # Every version has one; while it waits for its upload, more are written.
    assert next_snapshot(first) - first <= 4
    wait_until(lambda: paced_ledger.is_folded(paced, CHANGELOG), "all events are folded")
    paced_ledger.assert_exact(paced, CHANGELOG)


@pytest.mark.endurance
@pytest.mark.timeout(7200)
def test_switches_and_kills_at_every_pace_leave_every_balance_exact(
    paced: Settings, driver: SharedDriver, paced_source: EventSource, paced_ledger: Ledger
) -> None:
    driver.stop()
    log, paces = LogFile(log_path(paced)), list(PACES)
    append_again = burst(paced_source, paced_ledger)
    folding, standby = launch(paced.changed(stream_idle_interval_s=0)), None
    try:
        for number in range(KILLS):
            wait_until_holder(paced, folding.pid)
            other = paced.changed(stream_pace=paces[number % len(paces)], stream_idle_interval_s=0)
            # The next driver continues from a checkpoint that was written at another pace. Every second one is a standby.
            standby = launch(other, "--standby") if number % 2 else None
            log.wait_for(f"{QUERY}: {Phase.REAL_TIME}")
            log.wait_for(f"{QUERY}: {Phase.BATCHES} from now on", meanwhile=append_again)
            if number % 3:
                log.wait_for(f"{QUERY}: {Phase.REAL_TIME} from now on")
            append(paced_source, paced_ledger, BACKLOG)
            log.forget()
            folding.kill()
            folding.wait()
            folding, standby = standby or launch(other), None
        wait_until(
            lambda: paced_ledger.is_folded(paced, CHANGELOG), "all events are folded", FOLDED_TIMEOUT_S
        )
        paced_ledger.assert_exact(paced, CHANGELOG)
    finally:
        for process in (folding, standby):
            if process is not None:
                end(paced, process)


def wait_until_holder(settings: Settings, pid: int) -> None:
    """Wait until this driver has the lock."""

    def has_lock() -> bool:
        holder = running(settings.home)
        return holder is not None and holder.pid == pid

    wait_until(has_lock, f"driver {pid} has the lock")
