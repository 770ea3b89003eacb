"""A start of the driver on live traffic: launch -> first fold, how long it is behind, and the latency afterwards.

The driver continues from its checkpoint, as after a restart: what was produced meanwhile is its backlog.
"""

import argparse
import threading
import time
from collections import Counter
from decimal import Decimal
from statistics import median

from benchmarks.latency import Load, wait_for_real_time
from benchmarks.support.deposits import folded
from benchmarks.support.report import percentile, print_environment
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

# The driver is current from the first second of which all events are seen within this time.
CURRENT_MS = 1_000.0
WINDOW_S = 10
TIMEOUT_S = 120.0
BEFORE_LAUNCH_S = 2


def main() -> None:
    """Start the driver several times under load, and check all balances."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rate", type=int, default=1_000, help="events/s (1,000)")
    arguments.add_argument("--starts", type=int, default=3, help="starts to measure (3)")
    arguments.add_argument("--seconds", type=int, default=45, help="load after each launch (45)")
    options = arguments.parse_args()
    with temporary_stack(("kafka", "registry")) as settings:
        print_environment(settings)
        with stream_driver(settings):
            wait_for_real_time(settings)
            loads = [Load(settings, options.rate)]
            loads[0].run(5)
        firsts, currents = [], []
        for _ in range(options.starts):
            load = Load(settings, options.rate)
            loads.append(load)
            launched: list[float] = []

            def start(done: threading.Event, launched: list[float] = launched) -> None:
                time.sleep(BEFORE_LAUNCH_S)
                launched.append(time.time())
                with stream_driver(settings):
                    done.wait()

            load.run(options.seconds, observe=True, during=start)
            firsts.append(min(seen_s for _, seen_s in load.matched) - launched[0])
            currents.append(current_after_s(load.matched, launched[0]))
            print(
                f"start     first fold after {firsts[-1]:.1f} s, current after {currents[-1]:.0f} s"
                f"; p99 by {WINDOW_S} s from the launch: {windows(load.matched, launched[0])}",
                flush=True,
            )
        with stream_driver(settings):
            wait_until(
                lambda: folded(settings)[0] == expected(loads),
                "the balances are exact",
                TIMEOUT_S,
                poll_s=2.0,
            )
        print(
            f"{options.rate:,}/s   first fold after {median(firsts):.1f} s, current after {median(currents):.0f} s (medians of {options.starts})"
        )


def expected(loads: list[Load]) -> dict[str, tuple[int, Decimal]]:
    """Return customer -> (number of deposits, balance) of all loads."""
    counts = sum((load.deposits.appended for load in loads), Counter[int]())
    keys, amounts = loads[0].deposits.keys, loads[0].deposits.amounts
    return {keys[number].decode(): (count, count * amounts[number]) for number, count in counts.items()}


def current_after_s(matched: list[tuple[float, float]], launched_s: float) -> float:
    """Return the seconds from the launch until all events of every further second are seen within CURRENT_MS."""
    late = [sent_s for sent_s, seen_s in matched if (seen_s - sent_s) * 1000 > CURRENT_MS]
    return max((sent_s + 1 for sent_s in late), default=launched_s) - launched_s


def windows(matched: list[tuple[float, float]], launched_s: float) -> str:
    """Return the p99 in milliseconds of the events of each window, by the time at which they were produced."""
    by_window: dict[int, list[float]] = {}
    for sent_s, seen_s in matched:
        if sent_s >= launched_s:
            by_window.setdefault(int((sent_s - launched_s) // WINDOW_S), []).append((seen_s - sent_s) * 1000)
    return ", ".join(f"{percentile(sorted(by_window[window]), 0.99):,.0f}" for window in sorted(by_window))


if __name__ == "__main__":
    main()
