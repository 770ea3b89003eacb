"""Lookups by key, all items at once, and the delay until an item is served, over two nodes under each placement."""

import argparse
from collections.abc import Sequence

from benchmarks.placements.freshness import served_everywhere_ms
from benchmarks.placements.items import Items, items_on_two_nodes
from benchmarks.placements.whole_model import list_whole, listings_s
from benchmarks.support.lookup_client import run_lookups
from benchmarks.support.report import percentile, print_environment
from include.settings import Placement, Settings
from tests.support.temporary_stack import temporary_stack

NUMBERS = (1_000, 100_000)
CONNECTIONS = 32
WARM_UP_S = 3.0


def main() -> None:
    """Measure each placement with each number of items; a figure counts only if every answer is exact."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--items", nargs="+", type=int, default=list(NUMBERS), help="numbers of items")
    arguments.add_argument(
        "--placements", nargs="+", type=Placement, default=list(Placement), help="placements (all)"
    )
    arguments.add_argument("--seconds", type=float, default=10.0, help="duration of each load (10)")
    arguments.add_argument("--probes", type=int, default=100, help="new items, for the delay (100)")
    given = arguments.parse_args()
    with temporary_stack(("kafka", "registry")) as servers:
        print_environment(servers)
        for number in given.items:
            for placement in given.placements:
                with items_on_two_nodes(servers, placement, number) as items:
                    measure(items, placement, given.seconds, given.probes)


def measure(items: Items, placement: Placement, seconds: float, probes: int) -> None:
    """Check every answer of both nodes, then measure, and print the figures."""
    settings = items.settings
    for port in settings.query_ports:
        assert list_whole(port) == items.expected, f"{port} does not list exactly what was written"
    print(f"{placement}, {len(items.expected):,} items, exact on both nodes", flush=True)
    print(f"  loaded in {items.loaded_s:.1f} s; {items.memory()}", flush=True)
    for connections in (1, CONNECTIONS):
        print(_lookups(settings, items, connections, seconds), flush=True)
    print(_listings(settings, items, seconds), flush=True)
    delays_ms = sorted(served_everywhere_ms(items, probes))
    print(
        f"  new item       p50 {percentile(delays_ms, 0.5):.1f}  p99 {percentile(delays_ms, 0.99):.1f} ms until both nodes serve it",
        flush=True,
    )


def _listings(settings: Settings, items: Items, seconds: float) -> str:
    number, busy_s = len(items.expected), items.cpu_s()
    took_s = listings_s(settings.query_ports, number, seconds)
    busy_s = items.cpu_s() - busy_s
    middle_s = percentile(took_s, 0.5)
    return (
        f"  all items      p50 {middle_s * 1000:,.0f}  max {took_s[-1] * 1000:,.0f} ms, {number / middle_s:,.0f} items/s, "
        f"CPU {busy_s / number / (len(took_s) + 1) * 1e6:.1f} us each ({len(took_s)} times)"
    )


def _lookups(settings: Settings, items: Items, connections: int, seconds: float) -> str:
    questions: Sequence[tuple[str, str]] = list(items.expected.items())
    run_lookups(settings.query_ports, questions, connections, WARM_UP_S)
    busy_s = items.cpu_s()
    run = run_lookups(settings.query_ports, questions, connections, seconds)
    busy_s = items.cpu_s() - busy_s
    assert run.wrong == 0, f"{run.wrong} answers were wrong"
    ordered = sorted(run.milliseconds)
    return (
        f"  by key, {connections:>2} con {run.per_second:>7,.0f} lookups/s  p50 {percentile(ordered, 0.5):.2f}  "
        f"p99 {percentile(ordered, 0.99):.2f}  max {ordered[-1]:.1f} ms, CPU {busy_s / len(ordered) * 1e6:.0f} us each"
    )


if __name__ == "__main__":
    main()
