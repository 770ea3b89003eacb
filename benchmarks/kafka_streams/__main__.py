"""Foldlake beside Kafka Streams: latency, processor time, memory, start, restart after kill -9, and catch-up of the same fold.

Each measurement has a broker of its own, and is counted once every balance is exact. The engines take turns within a run.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.kafka_streams.engines import Engine, Foldlake, KafkaStreams
from benchmarks.kafka_streams.measurements import MEASUREMENTS, Extent, Figures
from benchmarks.kafka_streams.medians import line, table
from benchmarks.kafka_streams.program import GUARANTEES, BuildError, Program, StreamsOptions, describe
from benchmarks.support.report import print_environment
from include.settings import Settings
from tests.support.temporary_stack import temporary_settings, temporary_stack

PACES = ("latency", "balanced")
ENGINES = (*(f"foldlake-{pace}" for pace in PACES), *(f"streams-{guarantee}" for guarantee in GUARANTEES))


def main() -> None:
    """Measure each engine, and print the medians."""
    options = parsed_options()
    extent = Extent(
        rates=tuple(options.rates),
        seconds=options.seconds,
        warm_up_s=options.warm_up_s,
        recovery_rate=options.recovery_rate,
        recovery_s=options.recovery_s,
        before_kill_s=options.before_kill_s,
        events=options.events,
    )
    streams = StreamsOptions(options.threads, options.linger_ms, options.commit_interval_ms)
    with tempfile.TemporaryDirectory(prefix="foldlake-classes-") as classes:
        try:
            program = Program.build(Settings().tools, Path(classes))
        except BuildError as error:
            sys.exit(str(error))
        available: list[Engine] = [
            *(Foldlake(pace) for pace in PACES),
            *(KafkaStreams(program, guarantee, streams) for guarantee in GUARANTEES),
        ]
        engines = [engine for engine in available if engine.name in options.engines]
        print_environment(temporary_settings(Path(classes)))
        print(f"streams   {describe(streams)}", flush=True)
        runs: dict[str, list[Figures]] = {
            engine.name: [{} for _ in range(options.runs)] for engine in engines
        }
        for number in range(options.runs):
            for measurement in options.measurements:
                for engine in engines:
                    figures = measure(engine, measurement, extent)
                    runs[engine.name][number] |= figures
                    print(f"run {number + 1:<6}{engine.name:<18}{line(figures)}", flush=True)
    for row in table(runs):
        print(row)


def parsed_options() -> argparse.Namespace:
    """Return the options of the command line."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=3, help="runs, of which the medians are shown (3)")
    arguments.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES, help="engines (all)")
    arguments.add_argument(
        "--measurements", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS), help="(all)"
    )
    warm = arguments.add_argument_group("warm")
    warm.add_argument("--rates", nargs="+", type=int, default=(1_000, 10_000), help="events/s (1,000 10,000)")
    warm.add_argument("--seconds", type=int, default=20, help="duration of each rate (20)")
    warm.add_argument("--warm-up-s", type=int, default=75, help="load before the first rate (75)")
    recovery = arguments.add_argument_group("start and kill")
    recovery.add_argument("--recovery-rate", type=int, default=1_000, help="events/s (1,000)")
    recovery.add_argument("--recovery-s", type=int, default=40, help="load after the launch or the kill (40)")
    recovery.add_argument("--before-kill-s", type=int, default=45, help="load before the kill (45)")
    catch_up = arguments.add_argument_group("catch-up")
    catch_up.add_argument("--events", type=int, default=2_000_000, help="events to fold (2,000,000)")
    streams = arguments.add_argument_group("Kafka Streams")
    streams.add_argument(
        "--threads", type=int, default=os.cpu_count(), help="num.stream.threads (one per core)"
    )
    streams.add_argument("--linger-ms", type=int, default=5, help="linger.ms of its producers (5)")
    streams.add_argument("--commit-interval-ms", type=int, help="commit.interval.ms (eos: 100, alos: 30,000)")
    return arguments.parse_args()


def measure(engine: Engine, measurement: str, extent: Extent) -> Figures:
    """Run a measurement of an engine on a new broker."""
    with temporary_stack(("kafka", "registry")) as settings:
        return MEASUREMENTS[measurement](engine, settings, extent)


if __name__ == "__main__":
    main()
