"""Samples of the stack while it works: memory of its parts, the machine's processor time, and the lags of the driver's queries."""

import os
import threading
import time
from dataclasses import dataclass
from typing import Self

from benchmarks.idle import usage_by_process
from benchmarks.support.report import machine_busy_s, percentile
from include.errors import FoldlakeError
from include.settings import Settings
from include.status.flow_status import StreamStatus
from include.status.measurement import read_stream_status

# Column -> the parts of the stack that it sums, by the beginnings of their names.
COLUMNS = {
    "driver": ("stream driver",),
    "standby": ("standby driver",),
    "lake jobs": ("job server",),
    "Kafka": ("kafka",),
    "Airflow": ("api-server", "scheduler", "dag-processor", "triggerer", "airflow"),
    "nodes": ("node-",),
}
HEADING = (
    f"{'minute':>6}"
    + "".join(f"{name:>11}" for name in (*COLUMNS, "others", "all, MB"))
    + f"{'busy':>7}  events behind"
)


@dataclass(frozen=True)
class Sample:
    """memory_mb: proportional set size by part. busy: share of the machine's cores since the sample before. behind: largest lag in events."""

    minute: float
    memory_mb: dict[str, float]
    busy: float
    behind: int
    slowest: str

    @property
    def total_mb(self) -> float:
        """Memory of the whole stack."""
        return sum(self.memory_mb.values())


class Sampler:
    """Takes and prints a sample at an interval, in a thread, within the block."""

    def __init__(self, settings: Settings, every_s: float) -> None:
        self.samples: list[Sample] = []
        self._settings = settings
        self._every_s = every_s
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler")

    def __enter__(self) -> Self:  # noqa: D105 - starts the thread
        print(HEADING, flush=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:  # noqa: D105 - ends it
        self._is_stopping.set()
        self._thread.join()

    def _run(self) -> None:
        began_s = before_s = time.monotonic()
        busy_s = machine_busy_s()
        while not self._is_stopping.wait(self._every_s):
            now_s, now_busy_s = time.monotonic(), machine_busy_s()
            share = (now_busy_s - busy_s) / (now_s - before_s) / (os.cpu_count() or 1)
            before_s, busy_s = now_s, now_busy_s
            try:
                slowest, behind = largest_lag(read_stream_status(self._settings))
            except FoldlakeError as error:
                print(f"no sample: {error}", flush=True)
                continue
            sample = Sample((now_s - began_s) / 60, _memory_mb(self._settings), share, behind, slowest)
            self.samples.append(sample)
            print(sample_line(sample), flush=True)


def largest_lag(status: StreamStatus) -> tuple[str, int]:
    """Return the name and the number of events of the fold, route or emission that is furthest behind."""
    lags = {flow.query: flow.events_behind for flow in status.flows if flow.events_behind is not None}
    return max(lags.items(), key=lambda lag: lag[1])


def sample_line(sample: Sample) -> str:
    """Return a line below HEADING."""
    sums = [
        sum(size for part, size in sample.memory_mb.items() if part.startswith(beginnings))
        for beginnings in COLUMNS.values()
    ]
    columns = "".join(f"{size:>11,.0f}" for size in (*sums, sample.total_mb - sum(sums), sample.total_mb))
    return f"{sample.minute:>6.1f}{columns}{sample.busy:>7.0%}  {sample.behind:,} {sample.slowest}"


def print_summary(samples: list[Sample]) -> None:
    """Print how memory and lag developed: the first third, the last third, and the largest of all."""
    third = max(1, len(samples) // 3)
    first, last = samples[:third], samples[-third:]
    means = [sum(one.total_mb for one in part) / len(part) for part in (first, last)]
    print(
        f"memory    {means[0]:,.0f} MB on average in the first third, {means[1]:,.0f} MB in the last, at most {max(one.total_mb for one in samples):,.0f} MB"
    )
    lags = sorted(one.behind for one in samples)
    print(
        f"lag       of the slowest query in events: median {percentile(lags, 0.5):,}, p95 {percentile(lags, 0.95):,}, at most {lags[-1]:,}"
    )
    print(f"cores     {sum(one.busy for one in samples) / len(samples):.0%} busy on average", flush=True)


def _memory_mb(settings: Settings) -> dict[str, float]:
    return {name: used.memory_mb for name, used in usage_by_process(settings).items()}
