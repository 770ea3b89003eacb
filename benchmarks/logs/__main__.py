"""The system logs: throughput of every branch from nothing, and the latency from a log line to the answer of a node.

Every part compares what the branches wrote with the oracle of the demo, record by record.
"""

import argparse

from benchmarks.logs import answers, catch_up

PARTS = ("catch_up", "answers")


def main() -> None:
    """Run the parts that are asked for."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to run (all)")
    arguments.add_argument("--lines", type=int, default=200_000, help="lines to catch up with (200,000)")
    arguments.add_argument("--rate", type=int, default=200, help="lines/s of answers (200)")
    arguments.add_argument(
        "--warm-up-s", type=int, default=60, help="duration of the load before the measurement (60)"
    )
    arguments.add_argument("--seconds", type=int, default=60, help="duration of the measurement (60)")
    options = arguments.parse_args()
    if "catch_up" in options.only:
        catch_up.run(options.lines)
    if "answers" in options.only:
        answers.run(options.rate, options.warm_up_s, options.seconds)


if __name__ == "__main__":
    main()
