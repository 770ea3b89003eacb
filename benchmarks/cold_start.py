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
from benchmarks.support.recovery import WINDOW_S, current_after_s, window_p99_ms
from benchmarks.support.report import print_environment
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

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
            windows = ", ".join(f"{p99_ms:,.0f}" for p99_ms in window_p99_ms(load.matched, launched[0]))
            print(
                f"start     first fold after {firsts[-1]:.1f} s, current after {currents[-1]:.0f} s"
                f"; p99 by {WINDOW_S} s from the launch: {windows}",
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


if __name__ == "__main__":
    main()
