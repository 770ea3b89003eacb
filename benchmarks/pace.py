"""Latency and processor time of the stream over the rate of events, for each pace.

The latency of an event is the time from its production to its state record's arrival at the broker: the changelog has the broker's
timestamps here. Nothing observes the stream while it is measured.
"""

import argparse
import random
import subprocess
import time
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass

import psutil
from confluent_kafka import Consumer, Message, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from benchmarks.latency import wait_for_real_time
from benchmarks.support.deposits import BALANCE, CHANGELOG, Deposits, folded
from benchmarks.support.report import percentile, print_environment
from include.kafka.log_reading import end_offsets, log_consumer, read_tail
from include.kafka.state_record import decode_state_record
from include.kafka.topics import admin_client
from include.position import Offsets
from include.settings import Settings
from include.stream.pace import PACES
from include.stream.status import read_stream_status
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

CUSTOMERS = 10_000
RATES = (100, 1_000, 5_000, 10_000, 15_000, 20_000)
TICK_S = 0.005
WARM_UP_S = 75
WARM_UP_RATE = 2_000
# After the rate has changed, before it is measured.
SETTLE_S = 5
DRAIN_S = 60.0


@dataclass(frozen=True)
class Window:
    """The topics' contents at a moment, and the driver's processor time up to it in seconds."""

    source: Offsets
    changelog: Offsets
    cpu_s: float
    at_s: float


def main() -> None:
    """Measure each pace at each rate, and check all balances."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--paces", nargs="+", choices=PACES, default=list(PACES), help="paces (all)")
    arguments.add_argument("--rates", nargs="+", type=int, default=list(RATES), help="events/s")
    arguments.add_argument("--seconds", type=int, default=20, help="duration of each measurement (20)")
    arguments.add_argument("--interval-s", type=int, help="FOLDLAKE_STREAM_REAL_TIME_INTERVAL_S")
    options = arguments.parse_args()
    overrides = {} if options.interval_s is None else {"stream_real_time_interval_s": options.interval_s}
    with temporary_stack(("kafka", "registry"), **overrides) as settings:
        print_environment(settings)
        load = SteadyLoad(settings)
        for pace in options.paces:
            with stream_driver(settings.changed(stream_pace=pace)) as driver:
                wait_for_real_time(settings)
                keep_every_record(settings)
                load.run(WARM_UP_RATE, WARM_UP_S)
                for rate in options.rates:
                    measure(settings, load, driver, pace, rate, options.seconds)
        # The changelog has every record of the measurements: it is read once.
        expected = load.deposits.expected()
        assert folded(settings)[0] == expected, "the balances are not exact"
        print(f"exact     {sum(count for count, _ in expected.values()):,} events")


class SteadyLoad:
    """Produces at a constant rate, in ticks, at little cost."""

    def __init__(self, settings: Settings) -> None:
        self.deposits = Deposits(settings, CUSTOMERS)
        self._random = random.Random(1)
        self._producer = Producer(
            {
                "bootstrap.servers": settings.kafka.bootstrap_servers,
                "partitioner": "murmur2_random",
                "linger.ms": 0,
                "acks": "all",
            }
        )

    def run(self, events_per_s: int, seconds: float) -> None:
        """Produce for this time."""
        began_s = time.monotonic()
        sent = 0
        while (elapsed_s := time.monotonic() - began_s) < seconds:
            due = int(elapsed_s * events_per_s)
            for number in self._random.choices(range(CUSTOMERS), k=due - sent):
                self._producer.produce(
                    BALANCE.source_topic, key=self.deposits.keys[number], value=self.deposits.values[number]
                )
                self.deposits.appended[number] += 1
            sent = due
            self._producer.poll(0)
            time.sleep(TICK_S)
        assert self._producer.flush(30) == 0


def measure(
    settings: Settings,
    load: SteadyLoad,
    driver: subprocess.Popen[bytes],
    pace: str,
    rate: int,
    seconds: int,
) -> None:
    """Measure one rate, and print a line; then wait until the driver has caught up."""
    load.run(rate, SETTLE_S)
    begin = window(settings, driver)
    load.run(rate, seconds)
    end = window(settings, driver)
    left = read_stream_status(settings).events_behind
    wait_until(
        lambda: read_stream_status(settings).events_behind == 0, f"caught up after {rate}/s", DRAIN_S * 3
    )
    phases = sorted(
        {
            query.phase
            for query in read_stream_status(settings).queries
            if query.query.startswith(BALANCE.name)
        }
    )
    ms = sorted(latencies_ms(settings, begin, end))
    cpu = (end.cpu_s - begin.cpu_s) / (end.at_s - begin.at_s)
    print(
        f"{pace:<11}{rate:>7,}/s  p50 {percentile(ms, 0.5):8.1f}  p99 {percentile(ms, 0.99):9.1f}  max {ms[-1]:9.1f} ms"
        f"  {cpu:.2f} CPU s/s  {left:>8,} behind at the end  ({len(ms):,} measured, {', '.join(phases)})",
        flush=True,
    )


def window(settings: Settings, driver: subprocess.Popen[bytes]) -> Window:
    """Return the present moment."""
    consumer = log_consumer(settings.kafka.bootstrap_servers)
    partitions = BALANCE.partitions(settings.topics)
    jvm = psutil.Process(driver.pid)
    times = [process.cpu_times() for process in (jvm, *jvm.children(recursive=True))]
    try:
        return Window(
            Offsets.of_ends(end_offsets(consumer, BALANCE.source_topic, partitions)),
            Offsets.of_ends(end_offsets(consumer, CHANGELOG, partitions)),
            sum(time.user + time.system for time in times),
            time.monotonic(),
        )
    finally:
        consumer.close()


def latencies_ms(settings: Settings, begin: Window, end: Window) -> list[float]:
    """Return the latency of each event of the window: until the first state record of its key that contains it."""
    consumer = log_consumer(settings.kafka.bootstrap_servers)
    try:
        written: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
        for partition, first in begin.changelog.items():
            for message in since(consumer, CHANGELOG, partition, first):
                record = decode_state_record(message.value() or b"", lambda _id: BALANCE.state_schema)
                written[message.key() or b""].append((record.position.offset, message.timestamp()[1]))
        for records in written.values():
            records.sort()
        found = []
        for partition, first in begin.source.items():
            for message in since(consumer, BALANCE.source_topic, partition, first):
                offset, records = message.offset() or 0, written[message.key() or b""]
                if offset < end.source.of(partition):
                    _, written_ms = records[bisect_left(records, (offset, 0))]
                    found.append(float(written_ms - message.timestamp()[1]))
        return found
    finally:
        consumer.close()


def since(consumer: Consumer, topic: str, partition: int, first: int) -> list[Message]:
    """Return the records of a partition from an offset on."""
    (end,) = end_offsets(consumer, topic, partition + 1)[partition:]
    return list(read_tail(consumer, topic, partition, end - first)) if end > first else []


def keep_every_record(settings: Settings) -> None:
    """Have the broker keep every record of the changelog, with its own timestamp."""
    entries = {"cleanup.policy": "delete", "message.timestamp.type": "LogAppendTime"}
    resource = ConfigResource(
        ResourceType.TOPIC,
        CHANGELOG,
        incremental_configs=[
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in entries.items()
        ],
    )
    # Its futures fail once the client is gone.
    admin = admin_client(settings.kafka.bootstrap_servers)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


if __name__ == "__main__":
    main()
