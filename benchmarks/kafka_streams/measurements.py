"""What is measured of an engine, each on a broker of its own; all check the balances at their end."""

import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Message

from benchmarks.kafka_streams.engines import TAIL_RECORDS, Engine, running
from benchmarks.support.changelog_times import (
    TopicEnds,
    appended_ms,
    event_times,
    keep_every_record,
    topic_ends,
)
from benchmarks.support.deposits import BALANCE, Deposits, folded
from benchmarks.support.moment import moment
from benchmarks.support.recovery import WINDOW_S, current_after_s, window_p99_ms
from benchmarks.support.report import cpu_s, percentile, tree_resident_mb
from benchmarks.support.steady_load import SteadyLoad
from include.kafka.log_reading import log_consumer, newest_record, record_at
from include.kafka.topics import admin_client, ensure_topics
from include.settings import Settings
from tests.support.waiting import wait_until

WARM_UP_RATE = 2_000
# After the rate has changed, before it is measured.
SETTLE_S = 5
# For the checkpoint from which the measured start continues.
FIRST_FOLDS_S = 5
BEFORE_LAUNCH_S = 2
CATCH_UP_CUSTOMERS = 100_000
CAUGHT_UP_TIMEOUT_S = 900.0
CAUGHT_UP_POLL_S = 2.0

# A figure's name, with its unit -> its value.
Figures = dict[str, float]


@dataclass(frozen=True)
class Extent:
    """How much is measured.

    rates, seconds, warm_up_s: of the warm engine: events/s, duration at each rate, load before the first.
    recovery_rate, recovery_s: load in events/s after a start or a kill, and its duration.
    before_kill_s: load before a kill.
    events: log that is caught up with.
    """

    rates: tuple[int, ...]
    seconds: int
    warm_up_s: int
    recovery_rate: int
    recovery_s: int
    before_kill_s: int
    events: int


def warm(engine: Engine, settings: Settings, extent: Extent) -> Figures:
    """Measure latency, processor time and memory of a warm engine at each rate."""
    load = SteadyLoad(settings)
    create_changelog(engine, settings)
    figures: Figures = {}
    with running(engine, settings) as process:
        engine.wait_until_running(settings)
        load.run(WARM_UP_RATE, extent.warm_up_s)
        for rate in extent.rates:
            load.run(rate, SETTLE_S)
            begin = moment(settings, process.pid, engine.changelog)
            load.run(rate, extent.seconds)
            end = moment(settings, process.pid, engine.changelog)
            memory_mb = tree_resident_mb(process.pid)
            wait_until_caught_up(engine, settings, process)
            measured = latency_figures(engine, settings, begin.ends, end.ends) | {
                "CPU s/s": begin.cpu_share_until(end),
                "memory MB": memory_mb,
            }
            figures |= {f"{rate:,}/s {name}": value for name, value in measured.items()}
    wrong_balances(engine, settings, load.deposits)
    return figures


def start(engine: Engine, settings: Settings, extent: Extent) -> Figures:
    """Measure a start on live traffic that continues from an earlier run, as after a restart."""
    load = SteadyLoad(settings)
    create_changelog(engine, settings)
    with running(engine, settings) as process:
        engine.wait_until_running(settings)
        load.run(extent.recovery_rate, FIRST_FOLDS_S)
        wait_until_caught_up(engine, settings, process)
    begin = topic_ends(settings, engine.changelog)
    with in_background(load, extent.recovery_rate, BEFORE_LAUNCH_S + extent.recovery_s) as produced:
        time.sleep(BEFORE_LAUNCH_S)
        launched_s = time.time()
        with running(engine, settings) as process:
            produced.result()
            wait_until_caught_up(engine, settings, process)
    wrong_balances(engine, settings, load.deposits)
    return recovery_figures(engine, settings, begin, "start", launched_s)


def kill(engine: Engine, settings: Settings, extent: Extent) -> Figures:
    """Measure a relaunch under load, at once after the engine's process was killed with -9."""
    load = SteadyLoad(settings)
    create_changelog(engine, settings)
    process = engine.launch(settings)
    try:
        engine.wait_until_running(settings)
        begin = topic_ends(settings, engine.changelog)
        with in_background(load, extent.recovery_rate, extent.before_kill_s + extent.recovery_s) as produced:
            time.sleep(extent.before_kill_s)
            engine.kill(settings, process)
            killed_s = time.time()
            process = engine.launch(settings)
            produced.result()
            wait_until_caught_up(engine, settings, process)
    finally:
        engine.stop(settings, process)
    wrong = wrong_balances(engine, settings, load.deposits, after_kill=True)
    return recovery_figures(engine, settings, begin, "kill", killed_s) | {"kill: wrong balances": wrong}


def catch_up(engine: Engine, settings: Settings, extent: Extent) -> Figures:
    """Measure how fast an engine that has never run folds an existing log, including its start."""
    deposits = Deposits(settings, CATCH_UP_CUSTOMERS)
    deposits.append_many(settings, extent.events, seed=extent.events)
    create_changelog(engine, settings)
    launched_s = time.time()
    with running(engine, settings) as process:
        memory_mb = wait_until_caught_up(engine, settings, process)
        used_s = cpu_s(process.pid)
    wrong_balances(engine, settings, deposits)
    first_s, last_s = first_and_last_s(engine, settings)
    return {
        "catch-up events/s": extent.events / (last_s - launched_s),
        "catch-up first fold s": first_s - launched_s,
        "catch-up CPU s": used_s,
        "catch-up memory MB": memory_mb,
    }


MEASUREMENTS: dict[str, Callable[[Engine, Settings, Extent], Figures]] = {
    "warm": warm,
    "start": start,
    "kill": kill,
    "catch-up": catch_up,
}


def create_changelog(engine: Engine, settings: Settings) -> None:
    """Create the changelog as Foldlake does, and keep every record with the broker's timestamp."""
    admin = admin_client(settings.kafka_connection)
    topic = BALANCE.changelog(engine.changelog, settings.topics)
    ensure_topics(admin, [topic], settings.topics.replication_factor)
    keep_every_record(settings, engine.changelog)


def wait_until_caught_up(engine: Engine, settings: Settings, process: subprocess.Popen[bytes]) -> float:
    """Wait until all events are folded, and return the largest resident memory of the process meanwhile, in MB."""
    largest_mb = 0.0

    def is_caught_up() -> bool:
        nonlocal largest_mb
        assert process.poll() is None, f"{engine.name} ended with status {process.returncode}"
        largest_mb = max(largest_mb, tree_resident_mb(process.pid))
        return engine.is_caught_up(settings)

    wait_until(is_caught_up, "all events are folded", CAUGHT_UP_TIMEOUT_S, poll_s=CAUGHT_UP_POLL_S)
    return largest_mb


@contextmanager
def in_background(load: SteadyLoad, events_per_s: int, seconds: int) -> Iterator[Future[None]]:
    """Produce in another thread: an engine ends with the thread that has launched it."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(load.run, events_per_s, seconds)


def latency_figures(engine: Engine, settings: Settings, begin: TopicEnds, end: TopicEnds) -> Figures:
    """Return percentiles until state records are visible and, where that is later, until they are appended."""

    def percentiles(written_ms: Callable[[Message], int], suffix: str) -> Figures:
        events = event_times(settings, begin, end, engine.changelog, written_ms)
        ms = sorted(event.latency_ms for event in events)
        return {f"p50 ms{suffix}": percentile(ms, 0.5), f"p99 ms{suffix}": percentile(ms, 0.99)}

    visible_ms = engine.visible_ms(settings)
    if visible_ms is appended_ms:
        return percentiles(appended_ms, "")
    return percentiles(visible_ms, "") | percentiles(appended_ms, ", uncommitted")


def recovery_figures(
    engine: Engine, settings: Settings, begin: TopicEnds, cause: str, since_s: float
) -> Figures:
    """Return how long the events produced since a moment waited: the first, until current, and by window."""
    end = topic_ends(settings, engine.changelog)
    events = event_times(settings, begin, end, engine.changelog, engine.visible_ms(settings))
    since = [(e.sent_ms / 1000, e.written_ms / 1000) for e in events if e.sent_ms / 1000 >= since_s]
    figures = {
        f"{cause}: first fold s": min(written_s for _, written_s in since) - since_s,
        f"{cause}: current s": current_after_s(since, since_s),
    }
    for index, p99_ms in enumerate(window_p99_ms(since, since_s)):
        figures[f"{cause}: p99 ms {index * WINDOW_S}-{(index + 1) * WINDOW_S} s"] = p99_ms
    return figures


def first_and_last_s(engine: Engine, settings: Settings) -> tuple[float, float]:
    """Return when the first and the last state record became visible, in seconds of the Unix clock."""
    visible_ms = engine.visible_ms(settings)
    consumer = log_consumer(settings.kafka_connection)
    found = []
    try:
        for partition in range(BALANCE.partitions(settings.topics)):
            first = record_at(consumer, engine.changelog, partition, 0)
            last = newest_record(consumer, engine.changelog, partition, lambda _: True, TAIL_RECORDS)
            found += [visible_ms(record) / 1000 for record in (first, last) if record is not None]
    finally:
        consumer.close()
    return min(found), max(found)


def wrong_balances(
    engine: Engine, settings: Settings, deposits: Deposits, *, after_kill: bool = False
) -> int:
    """Return how many balances are not exact: none, unless an engine that is not exactly once was killed."""
    found, _ = folded(settings, engine.changelog)
    expected = deposits.expected()
    wrong = sum(found.get(customer) != expected.get(customer) for customer in found.keys() | expected.keys())
    may_be_wrong = after_kill and not engine.is_exactly_once
    assert may_be_wrong or wrong == 0, f"{engine.name}: {wrong:,} of {len(expected):,} balances are not exact"
    return wrong
