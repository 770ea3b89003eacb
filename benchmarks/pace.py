"""Latency and processor time of the stream over the rate of events, for each pace.

What is measured, and how: benchmarks/support/measurement.py.
"""

import argparse
import subprocess

from benchmarks.latency import wait_for_real_time
from benchmarks.support.changelog_times import keep_every_record
from benchmarks.support.deposits import BALANCE, folded
from benchmarks.support.measurement import measure_rate
from benchmarks.support.report import print_environment
from benchmarks.support.steady_load import SteadyLoad
from include.settings import Settings
from include.status.measurement import read_stream_status
from include.stream.pace import PACES
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import stream_driver

RATES = (100, 1_000, 5_000, 10_000, 15_000, 20_000)
WARM_UP_S = 75
WARM_UP_RATE = 2_000


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


def measure(
    settings: Settings,
    load: SteadyLoad,
    driver: subprocess.Popen[bytes],
    pace: str,
    rate: int,
    seconds: int,
) -> None:
    """Measure one rate, and print a line; then wait until the driver has caught up."""
    measured = measure_rate(settings, load, driver.pid, rate, seconds)
    phases = sorted(
        {
            report.phase
            for report in read_stream_status(settings).reports
            if report.query.startswith(BALANCE.name)
        }
    )
    p50, p99, p999, highest = (measured.percentile_ms(share) for share in (0.5, 0.99, 0.999, 1))
    print(
        f"{pace:<11}{rate:>7,}/s  p50 {p50:8.1f}  p99 {p99:9.1f}  p99.9 {p999:9.1f}  max {highest:9.1f} ms"
        f"  {measured.cpu:.2f} CPU s/s, machine {measured.machine:.2f}  {measured.behind:>8,} behind at the end"
        f"  ({len(measured.latencies_ms):,} measured, {measured.commits} commits, {', '.join(phases)})",
        flush=True,
    )


if __name__ == "__main__":
    main()
