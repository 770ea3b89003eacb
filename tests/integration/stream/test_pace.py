"""A query that falls behind in real time folds in batches until it has kept up; every balance is exact at every pace."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from include.settings import Settings
from include.stream.checkpoints import checkpoint_path, query_name
from include.stream.pace import PACES
from include.stream.query_reports import Phase, query_status
from stack.launchers.stream_driver import running
from tests.support.stream_events import BALANCE, Ledger, random_event
from tests.support.stream_process import EventSource, make_topics
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import LogFile, SharedDriver, end, launch, log_path
from tests.support.waiting import wait_until

BACKLOG = 3_000
BURST = 20_000
# As many switches to batches, and at least half as many back.
KILLS = int(os.environ.get("FOLDLAKE_TEST_KILLS", "50"))
QUERY = query_name(BALANCE.name, 1)
# The changelog then has millions of records.
FOLDED_TIMEOUT_S = 600


@pytest.fixture(scope="module")
def stream_stack(keep_home: Callable[[], bool]) -> Iterator[Settings]:
    """A Kafka of its own: other tests would read the many events again and again."""
    with temporary_stack(
        ("kafka", "registry"), keep_home, stream_real_time_interval_s=10, stream_spare_queries=0
    ) as settings:
        make_topics(settings, "balance")
        yield settings


@pytest.fixture(scope="module")
def driver(stream_stack: Settings) -> Iterator[SharedDriver]:
    with SharedDriver(stream_stack) as driver:
        yield driver


@pytest.fixture(scope="module")
def source(stream_stack: Settings) -> EventSource:
    return EventSource(stream_stack, BALANCE.source_topic)


@pytest.fixture(scope="module")
def ledger(stream_stack: Settings) -> Ledger:
    return Ledger(stream_stack)


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
    stream_stack: Settings, driver: SharedDriver, source: EventSource, ledger: Ledger
) -> None:
    def phase() -> str:
        status = query_status(stream_stack.kafka.bootstrap_servers, "balance", 1)
        assert status is None or status.restarts == 0, status.last_error
        return "" if status is None else status.phase

    driver.ensure_running(
        stream_catch_up_threshold_events=500,
        stream_catch_up_batch_events=1_000_000,
        stream_min_batch_time_s=3,
        stream_pace="latency",
    )
    wait_until(lambda: phase() == Phase.REAL_TIME, "it folds in real time")
    append_again = burst(source, ledger)
    wait_until(lambda: phase() == Phase.BATCHES or append_again(), "it folds in batches", poll_s=0)
    wait_until(lambda: phase() == Phase.REAL_TIME, "it folds in real time again")
    append(source, ledger, BACKLOG)
    wait_until(lambda: ledger.is_folded(stream_stack), "all events are folded")
    ledger.assert_exact(stream_stack)


def test_paces_fold_from_the_same_checkpoint(
    stream_stack: Settings, driver: SharedDriver, source: EventSource, ledger: Ledger
) -> None:
    driver.stop()
    append(source, ledger, BACKLOG)
    driver.ensure_running(stream_pace="throughput")
    wait_until(lambda: ledger.is_folded(stream_stack), "the backlog is folded")
    append(source, ledger, BACKLOG)
    wait_until(lambda: ledger.is_folded(stream_stack), "all events are folded")
    ledger.assert_exact(stream_stack)


@pytest.mark.endurance
def test_a_restart_in_real_time_applies_few_commits_to_a_snapshot(
    stream_stack: Settings, driver: SharedDriver, source: EventSource, ledger: Ledger
) -> None:
    driver.ensure_running(stream_pace="balanced")
    state = Path(checkpoint_path(stream_stack.checkpoints, BALANCE.name, 1)) / "state"

    def next_snapshot(after: int) -> int:
        """Return the version of the first snapshot of the state after this one, while events are folded."""

        def newest() -> int:
            append(source, ledger, 1)
            return max((int(path.name.split("_")[0]) for path in state.rglob("*.zip")), default=0)

        wait_until(lambda: newest() > after, f"a snapshot after version {after}", poll_s=1.0)
        return newest()

    first = next_snapshot(next_snapshot(0))

    # Every version has one; while it waits for its upload, more are written.
    assert next_snapshot(first) - first <= 4
    wait_until(lambda: ledger.is_folded(stream_stack), "all events are folded")
    ledger.assert_exact(stream_stack)


@pytest.mark.endurance
@pytest.mark.timeout(7200)
def test_switches_and_kills_at_every_pace_leave_every_balance_exact(
    stream_stack: Settings, driver: SharedDriver, source: EventSource, ledger: Ledger
) -> None:
    driver.stop()
    settings = stream_stack.changed(
        stream_catch_up_threshold_events=500,
        stream_catch_up_batch_events=1_000_000,
        stream_min_batch_time_s=3,
    )
    log, paces = LogFile(log_path(settings)), list(PACES)
    append_again = burst(source, ledger)
    folding, standby = launch(settings), None
    try:
        for number in range(KILLS):
            wait_until_holder(settings, folding.pid)
            other = settings.changed(stream_pace=paces[number % len(paces)])
            # The next driver goes on from a checkpoint that was written at another pace. Every second one is a standby.
            standby = launch(other, "--standby") if number % 2 else None
            log.wait_for(f"{QUERY}: {Phase.REAL_TIME}")
            log.wait_for(f"{QUERY}: {Phase.BATCHES} from now on", meanwhile=append_again)
            if number % 3:
                log.wait_for(f"{QUERY}: {Phase.REAL_TIME} from now on")
            append(source, ledger, BACKLOG)
            log.forget()
            folding.kill()
            folding.wait()
            folding, standby = standby or launch(other), None
        wait_until(lambda: ledger.is_folded(settings), "all events are folded", FOLDED_TIMEOUT_S)
        ledger.assert_exact(settings)
    finally:
        for process in (folding, standby):
            if process is not None:
                end(settings, process)


def wait_until_holder(settings: Settings, pid: int) -> None:
    """Wait until this driver has the lock."""

    def has_lock() -> bool:
        holder = running(settings.home)
        return holder is not None and holder.pid == pid

    wait_until(has_lock, f"driver {pid} has the lock")
