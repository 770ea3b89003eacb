"""What further read models cost: latency, processor time and memory over their number.

Each read model folds every event of the source into a version of its own, as the balance does; with `--idle`, it has a source of its own, without
events, and is measured once its queries wait for some; at a rate of 0, so do the balance's. The latency is the balance's.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.latency import wait_for_real_time
from benchmarks.support.changelog_times import keep_every_record
from benchmarks.support.deposits import BALANCE, folded
from benchmarks.support.measurement import measure_rate
from benchmarks.support.report import print_environment, tree_resident_mb
from benchmarks.support.steady_load import SteadyLoad
from include.kafka.topics import dead_letter_topic
from include.settings import Settings
from include.spark.stream_config import stream_task_slots
from include.stream.checkpoints import query_name
from include.stream.pace import PACES
from include.stream.query_reports import Phase, read_queries
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import stream_driver

COUNTS = (1, 2, 5, 10)
RATES = (0, 1_000)
WAITING_POLL_S = 5
WARM_UP_RATE = 1_000
MODULE = """
from dataclasses import replace

from include.read_models.balance.model import READ_MODEL as BALANCE

DECLARATIONS = [replace(BALANCE, name="{name}", source_topic="{topic}")]
"""


def main() -> None:
    """Measure each number of read models at each rate, and check all of their states."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--models", nargs="+", type=int, default=list(COUNTS), help="numbers of read models"
    )
    arguments.add_argument("--rates", nargs="+", type=int, default=list(RATES), help="events/s")
    arguments.add_argument("--seconds", type=int, default=30, help="duration of each measurement (30)")
    arguments.add_argument("--warm-up-s", type=int, default=75, help="duration of the load before it (75)")
    arguments.add_argument(
        "--shuffle-partitions", type=int, default=0, help="FOLDLAKE_STREAM_SHUFFLE_PARTITIONS"
    )
    arguments.add_argument("--pace", choices=PACES, default="balanced", help="pace of the stream (balanced)")
    arguments.add_argument(
        "--interval-s",
        type=int,
        default=60,
        help="FOLDLAKE_STREAM_REAL_TIME_INTERVAL_S: queries wait after five of them without an event (60)",
    )
    arguments.add_argument("--idle", action="store_true", help="the further read models receive no events")
    options = arguments.parse_args()
    for number in options.models:
        with tempfile.TemporaryDirectory() as folder:
            names = ["balance", *declare(Path(folder), number - 1, idle=options.idle)]
            with temporary_stack(
                ("kafka", "registry"),
                read_models_dir=Path(folder),
                stream_pace=options.pace,
                stream_real_time_interval_s=options.interval_s,
                stream_shuffle_partitions=options.shuffle_partitions,
            ) as settings:
                print_environment(settings)
                measure(settings, names, options)


def declare(folder: Path, number: int, *, idle: bool) -> list[str]:
    """Write modules of so many further read models, and return the read models' names."""
    names = [f"copy-{index + 1}" for index in range(number)]
    for name in names:
        module = MODULE.format(name=name, topic=name if idle else BALANCE.source_topic)
        (folder / f"{name.replace('-', '_')}.py").write_text(module, encoding="utf-8")
    return names


def measure(settings: Settings, names: list[str], options: argparse.Namespace) -> None:
    """Run a driver for these read models, and print a line for each rate."""
    load = SteadyLoad(settings)
    slots = stream_task_slots(settings)
    with stream_driver(settings) as driver:
        wait_for_real_time(settings)
        keep_every_record(settings)
        load.run(WARM_UP_RATE, options.warm_up_s)
        if options.idle:
            wait_until_waiting(settings, names[1:], meanwhile=lambda: load.run(WARM_UP_RATE, WAITING_POLL_S))
        for rate in options.rates:
            if options.idle and rate == 0:
                wait_until_waiting(settings, names, meanwhile=lambda: time.sleep(WAITING_POLL_S))
            measured = measure_rate(settings, load, driver.pid, rate, options.seconds)
            p50, p99, p999, highest = (measured.percentile_ms(share) for share in (0.5, 0.99, 0.999, 1))
            print(
                f"{len(names):>3} read models, {slots} slots  {rate:>6,}/s  p50 {p50:7.1f}  p99 {p99:7.1f}"
                f"  p99.9 {p999:7.1f}  max {highest:7.1f} ms  {measured.cpu:.3f} CPU s/s, machine {measured.machine:.3f}"
                f"  {tree_resident_mb(driver.pid):,.0f} MB  {measured.commits} commits",
                flush=True,
            )
    expected = load.deposits.expected()
    for name in names[:1] if options.idle else names:
        assert folded(settings, f"{name}.v1.changelog")[0] == expected, f"the states of {name} are not exact"
    print(f"exact     {sum(count for count, _ in expected.values()):,} events in each")


def wait_until_waiting(settings: Settings, names: list[str], meanwhile: Callable[[], None]) -> None:
    """Wait until the queries of these read models, and of their dead letters, wait for events."""
    wanted = {query for name in names for query in (query_name(name, 1), dead_letter_topic(name))}
    # Each time that a query starts again, it runs for longer.
    deadline_s = time.monotonic() + 20 * settings.stream.real_time_interval_s
    while time.monotonic() < deadline_s:
        found = {query.query: query.phase for query in read_queries(settings.kafka_connection)}
        if all(found.get(query) == Phase.WAITING for query in wanted):
            return
        meanwhile()
    raise TimeoutError(f"the queries of {', '.join(names)} do not wait for events")


if __name__ == "__main__":
    main()
