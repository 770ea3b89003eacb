"""Records written, latency and processor time of a read model over its emit interval."""

import argparse

from benchmarks.latency import wait_for_real_time
from benchmarks.support.changelog_times import keep_every_record, topic_ends
from benchmarks.support.deposits import BALANCE, folded
from benchmarks.support.measurement import measure_rate
from benchmarks.support.report import print_environment
from benchmarks.support.steady_load import SteadyLoad
from include.status.measurement import read_stream_status
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

DEFAULT_INTERVALS_MS = (0, 500, 2_000, 5_000)
START_TIMEOUT_S = 180


def main() -> None:
    """Measure each interval with the same load, and check all balances."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--intervals-ms",
        nargs="+",
        type=int,
        default=list(DEFAULT_INTERVALS_MS),
        help="emit intervals; 0: each change",
    )
    arguments.add_argument("--rate", type=int, default=1_000, help="events/s (1000)")
    arguments.add_argument("--customers", type=int, default=500, help="number of keys (500)")
    arguments.add_argument("--seconds", type=int, default=20, help="duration of each measurement (20)")
    arguments.add_argument("--warm-up", type=int, default=20, help="seconds of load before it (20)")
    options = arguments.parse_args()
    with temporary_stack(("kafka", "registry")) as settings:
        print_environment(settings)
        load = SteadyLoad(settings, options.customers)
        for interval_ms in options.intervals_ms:
            entries = (f"{BALANCE.name}:{interval_ms}",) if interval_ms else ()
            changed = settings.changed(stream_batch_mode=entries)
            with stream_driver(changed) as driver:
                if interval_ms:
                    wait_until(
                        lambda: read_stream_status(changed).state == "running",  # noqa: B023 - called at once
                        "the driver runs",
                        START_TIMEOUT_S,
                    )
                else:
                    wait_for_real_time(changed)
                keep_every_record(changed)
                load.run(options.rate, options.warm_up)
                began = topic_ends(changed)
                measured = measure_rate(changed, load, driver.pid, options.rate, options.seconds)
                ended = topic_ends(changed)
                records = began.changelog.events_until(ended.changelog)
                events = began.source.events_until(ended.source)
                p50, p99 = (measured.percentile_ms(share) for share in (0.5, 0.99))
                name = f"{interval_ms:,} ms" if interval_ms else "each change"
                print(
                    f"{name:<13}{records / events:6.1%} of a record per event  p50 {p50:8.1f}  p99 {p99:8.1f} ms"
                    f"  {measured.cpu:.2f} CPU s/s",
                    flush=True,
                )
        expected = load.deposits.expected()
        assert folded(settings)[0] == expected, "the balances are not exact"
        print(f"exact     {sum(count for count, _ in expected.values()):,} events")


if __name__ == "__main__":
    main()
