"""All systems at once with the balance under a steady load: memory, lag and latency over time, and every result exact at the end."""

import argparse
import threading

from benchmarks.all_systems.exactness import require_all_exact
from benchmarks.all_systems.loads import Loads, Rates
from benchmarks.all_systems.samples import Sampler, print_summary
from benchmarks.latency import Probes, wait_for_real_time
from benchmarks.support.report import latency_line, print_environment
from demo.logs.catalogue import append_entries, first_entries
from tests.support.temporary_stack import temporary_stack

SYSTEMS = ("pos", "orders", "logs")
PROBES_PER_S = 1


def main() -> None:
    """Run the load, and print a line for each sample."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--minutes", type=float, default=30.0, help="duration of the load (30)")
    arguments.add_argument("--deposits", type=int, default=100, help="deposits/s (100)")
    arguments.add_argument("--invoices", type=int, default=20, help="invoices/s (20)")
    arguments.add_argument("--lines", type=int, default=40, help="log lines/s (40)")
    arguments.add_argument("--orders", type=int, default=500, help="active orders (500)")
    arguments.add_argument("--sample-every-s", type=int, default=60, help="time between samples (60)")
    options = arguments.parse_args()
    rates = Rates(options.deposits, options.invoices, options.lines, options.orders)
    # As for a user: with Airflow and its schedules, lake jobs of low priority, and a standby driver if the memory suffices.
    with temporary_stack(systems=SYSTEMS, stream_standby="auto", lake_niceness=15) as settings:
        print_environment(settings)
        print(f"load      {rates} for {options.minutes:g} min", flush=True)
        append_entries(settings, first_entries())
        loads = Loads(settings, rates, options.minutes * 60)
        wait_for_real_time(settings)
        probes = Probes(settings, per_s=PROBES_PER_S, threads=1)
        done = threading.Event()
        probing = threading.Thread(target=probes.run, args=(done,), name="probes")
        with Sampler(settings, options.sample_every_s) as sampler:
            probing.start()
            loads.run()
            done.set()
            probing.join()
        print_summary(sampler.samples)
        every = [latency for latencies in probes.latencies_ms.values() for latency in latencies]
        print(latency_line("deposit acknowledged -> lookup", every), flush=True)
        for line in require_all_exact(
            settings, loads, probes.deposits, round(rates.invoices * options.minutes * 60)
        ):
            print(f"exact     {line}", flush=True)


if __name__ == "__main__":
    main()
