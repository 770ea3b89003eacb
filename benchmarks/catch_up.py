"""Catch-up: folds an existing log from its first event; reports events/s without start-up, and the driver's memory."""

import argparse
import re
import time
from datetime import UTC, datetime

from benchmarks.support.deposits import Deposits, folded
from benchmarks.support.report import print_environment, resident_mb
from include.settings import Settings
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import log_path, stream_driver
from tests.support.waiting import wait_until

CUSTOMERS = 100_000
CATCHING_UP = re.compile(r"^(\S+ \S+)Z .* events behind: catching up", re.MULTILINE)
TIMEOUT_S = 600


def main() -> None:
    """Measure a quarter of the events, then all of them, each time from the first event."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--events", type=int, default=2_000_000, help="events to fold (2,000,000)")
    events = arguments.parse_args().events
    for number in (events // 4, events):
        with temporary_stack(("kafka", "registry")) as settings:
            if number != events:
                print_environment(settings)
            measure(settings, number)


def measure(settings: Settings, events: int) -> None:
    """Fold `events` events of 100,000 customers, and print the rate and the memory."""
    deposits = Deposits(settings, CUSTOMERS)
    deposits.append_many(settings, events, seed=events)
    launched_s = time.time()
    peak_mb = 0.0
    with stream_driver(settings) as process:

        def has_caught_up() -> bool:
            nonlocal peak_mb
            assert process.poll() is None, "the driver ended: " + read_log(settings)[-2000:]
            peak_mb = max(peak_mb, resident_mb(process.pid))
            return ": real time" in read_log(settings)

        wait_until(has_caught_up, "the driver has caught up", TIMEOUT_S, poll_s=0.25)
    found, written_at_s = folded(settings)
    assert found == deposits.expected(), "the balances are not exact"
    began = CATCHING_UP.search(read_log(settings))
    assert began is not None, "the driver did not catch up"
    began_s = datetime.strptime(began[1], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC).timestamp()
    print(
        f"catch-up  {events:>9,} events, {len(found):,} customers: {events / (written_at_s - began_s):>9,.0f} events/s "
        f"({written_at_s - began_s:.1f} s after {began_s - launched_s:.1f} s of start-up), "
        f"driver {peak_mb:,.0f} MB at most, exact"
    )


def read_log(settings: Settings) -> str:
    """Return the driver's log."""
    return log_path(settings).read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
