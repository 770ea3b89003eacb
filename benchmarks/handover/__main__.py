"""How long nothing is folded when `up` replaces the driver, and when the driver is killed, at a steady load and with its standby ready.

The figure is the longest time without a record on the changelog that contains a new event: repeated records do not count. Airflow does not run: the
stream supervisor is that of this process.
"""

import argparse
import threading
import time
import uuid
from collections.abc import Callable
from itertools import pairwise
from statistics import median

from benchmarks.latency import wait_for_real_time
from benchmarks.outages import kill_driver, standbys
from benchmarks.support.changelog_times import (
    TopicEnds,
    appended_ms,
    event_times,
    keep_every_record,
    topic_ends,
)
from benchmarks.support.deposits import BALANCE, CHANGELOG, folded
from benchmarks.support.report import print_environment
from benchmarks.support.steady_load import SteadyLoad
from include.kafka.log_reading import log_consumer, read_tail
from include.kafka.state_record import decode_state_record
from include.position import Offsets
from include.settings import Settings
from include.stream import driver_configuration
from include.stream.driver_configuration import Handover
from include.stream.driver_launch import follow, withdraw
from stack.launchers.stream_supervisor import DRIVER_COMMAND, StreamSupervisor
from tests.support.temporary_stack import temporary_stack
from tests.support.waiting import wait_until

POLL_S = 0.05
TIMEOUT_S = 300.0
# How long the new driver has all the load before the figures are taken.
SETTLE_S, FOLD_S = 12.0, 2.0


def main() -> None:
    """Replace the driver several times under load, and print the longest time without a fold of each."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--times", type=int, default=3, help="handovers, and kills (3)")
    arguments.add_argument("--events-per-s", type=int, default=1_000, help="deposits/s (1,000)")
    arguments.add_argument("--systems", default="", help="further declarations, such as logs,pos (none)")
    arguments.add_argument("--only", choices=("handover", "kill", ""), default="", help="only these (both)")
    arguments.add_argument(
        "--warm-up-s",
        type=float,
        default=60.0,
        help="load before the first handover, for the JVM's compiler (60)",
    )
    options = arguments.parse_args()
    systems = tuple(filter(None, options.systems.split(",")))
    with temporary_stack(("kafka", "registry"), stream_standby="on", systems=systems) as settings:
        print_environment(settings)
        (settings.home / "stream").mkdir(exist_ok=True)
        driver_configuration.request(settings, "first")
        follow(settings.home, "benchmark")
        supervisor = StreamSupervisor(settings, DRIVER_COMMAND, lambda _: False)
        work = Benchmark(settings, options.events_per_s, options.warm_up_s)
        worker = threading.Thread(target=work.run, args=(options.times, options.only))
        worker.start()
        while worker.is_alive():
            supervisor.step()
            time.sleep(POLL_S)
        # Nobody wants a driver any more.
        supervisor.step()
        assert work.is_complete, "a handover has failed: see the error above"


class Benchmark:
    """Replaces the driver of a stack under load; the main thread takes the steps of its supervisor."""

    def __init__(self, settings: Settings, events_per_s: int, warm_up_s: float) -> None:
        self.is_complete = False
        self._settings = settings
        self._events_per_s = events_per_s
        self._warm_up_s = warm_up_s
        self._is_over = threading.Event()
        # Those that have been ready, and are no longer.
        self._standbys = 0

    def run(self, times: int, only: str) -> None:
        """Measure, then compare all balances with the events."""
        settings = self._settings
        wait_for_real_time(settings)
        keep_every_record(settings)
        load = SteadyLoad(settings)
        producing = threading.Thread(target=self._produce, args=(load,))
        producing.start()
        try:
            time.sleep(self._warm_up_s)
            for name, cause in (("handover", self._hand_over), ("kill", self._kill)):
                if only in ("", name):
                    self._measure(name, cause, times)
        finally:
            self._is_over.set()
            producing.join()
        expected = load.deposits.expected()
        wait_until(lambda: folded(settings)[0] == expected, "the balances are exact", TIMEOUT_S, poll_s=2.0)
        print(f"exact     {sum(count for count, _ in expected.values()):,} events", flush=True)
        withdraw(settings.home)
        self.is_complete = True

    def _produce(self, load: SteadyLoad) -> None:
        while not self._is_over.is_set():
            load.run(self._events_per_s, 5.0)

    def _measure(self, name: str, cause: Callable[[], None], times: int) -> None:
        gaps_s = []
        for _ in range(times):
            # Records of later events are on the changelog after this.
            changelog = topic_ends(self._settings).changelog
            begin = TopicEnds(topic_ends(self._settings).source, changelog)
            cause()
            time.sleep(SETTLE_S)
            gap_s, repeated, latency_s = self._figures(begin)
            gaps_s.append(gap_s)
            print(
                f"  {name}: {gap_s:.2f} s without a new event; {repeated:,} records repeated; latest event after {latency_s:.2f} s",
                flush=True,
            )
        print(
            f"{name:<10}without a new event: median {median(gaps_s):.2f}, max {max(gaps_s):.2f} s", flush=True
        )

    def _hand_over(self) -> None:
        settings = self._settings
        wanted = driver_configuration.request(settings, uuid.uuid4().hex)

        def is_done() -> bool:
            report = driver_configuration.read_report(settings.home)
            return report is not None and (report.request, report.state) == (wanted.request, Handover.DONE)

        wait_until(is_done, "the driver is replaced", TIMEOUT_S)
        self._standbys = standbys(settings)

    def _kill(self) -> None:
        wait_until(lambda: standbys(self._settings) > self._standbys, "a standby is ready", TIMEOUT_S)
        self._standbys = standbys(self._settings)
        kill_driver(self._settings)

    def _figures(self, begin: TopicEnds) -> tuple[float, int, float]:
        """Return the longest time without a new event on a partition's changelog, the number of repeated records, and the latest event's latency."""
        settings, consumer = self._settings, log_consumer(self._settings.kafka_connection)
        end = topic_ends(settings)
        # Until everything up to there is folded.
        time.sleep(FOLD_S)
        moments: list[int] = []
        try:
            for partition, first in begin.changelog.items():
                newest = begin.source.of(partition) - 1
                for message in read_tail(consumer, CHANGELOG, partition, end.changelog.of(partition) - first):
                    record = decode_state_record(message.value() or b"", lambda _id: BALANCE.state_schema)
                    if record.position.offset > newest:
                        newest = record.position.offset
                        moments.append(appended_ms(message))
        finally:
            consumer.close()
        longest_ms = max(later - earlier for earlier, later in pairwise(sorted(moments)))
        latest_ms = max(event.latency_ms for event in event_times(settings, begin, end))
        folded_events, records = (
            _count(before, after)
            for before, after in ((begin.source, end.source), (begin.changelog, end.changelog))
        )
        return longest_ms / 1000, records - folded_events, latest_ms / 1000


def _count(before: Offsets, after: Offsets) -> int:
    return sum(offset - before.of(partition) for partition, offset in after.items())


if __name__ == "__main__":
    main()
