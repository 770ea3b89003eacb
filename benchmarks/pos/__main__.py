"""The system pos: a year of invoices through every branch, latency of a notification, and what the stack costs with both systems.

Every part compares what the branches wrote with the oracle of the demo, record by record.
"""

import argparse

from benchmarks.pos import catch_up, latency, usage
from benchmarks.pos.branch_subsets import SUBSETS
from include.stream.pace import PACES

PARTS = ("catch_up", "latency", "usage")


def main() -> None:
    """Run the parts that are asked for."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to run (all)")
    arguments.add_argument(
        "--invoices", type=int, default=0, help="oldest invoices to catch up with (0: all)"
    )
    arguments.add_argument(
        "--branch",
        nargs="+",
        choices=[*SUBSETS, "none"],
        default=list(SUBSETS),
        help="branches to catch up with alone, after all together (each)",
    )
    arguments.add_argument("--rate", type=int, default=200, help="invoices/s of latency and usage (200)")
    arguments.add_argument(
        "--paces", nargs="+", choices=PACES, default=["balanced", "latency"], help="paces of latency"
    )
    arguments.add_argument(
        "--warm-up-s", type=int, default=60, help="duration of the load before a measurement (60)"
    )
    arguments.add_argument("--seconds", type=int, default=60, help="duration of each measurement (60)")
    options = arguments.parse_args()
    if "catch_up" in options.only:
        catch_up.run(options.invoices, [name for name in options.branch if name in SUBSETS])
    for pace in options.paces if "latency" in options.only else ():
        latency.run(pace, options.rate, options.warm_up_s, options.seconds)
    if "usage" in options.only:
        usage.run(options.rate, options.warm_up_s, options.seconds)


if __name__ == "__main__":
    main()
