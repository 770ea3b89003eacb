"""The benchmarks' output: machine, settings, and latency lines."""

import os
import platform
from collections.abc import Sequence
from pathlib import Path

import psutil

from include.settings import Settings

# The settings that affect performance.
SHOWN_SETTINGS = (
    "partitions",
    "stream_driver_memory_mb",
    "stream_pace",
    "stream_real_time_interval_s",
    "stream_catch_up_batch_events",
    "node_http_workers",
)


def print_environment(settings: Settings) -> None:
    """Print the machine, its load, and the settings that affect performance."""
    memory_gib = psutil.virtual_memory().total / 2**30
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    values = settings.by_variable()
    print(f"machine   {os.cpu_count()} cores, {_cpu_model()}, {memory_gib:.0f} GiB, {platform.platform()}")
    print(f"load      {load} (1, 5, 15 min) before the run")
    print("settings  " + ", ".join(f"{name}={values[name]}" for name in SHOWN_SETTINGS))


def percentile(sorted_values: Sequence[float], share: float) -> float:
    """Return a percentile of the sorted values; `share` is from 0 to 1."""
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * share))]


def latency_line(name: str, milliseconds: list[float]) -> str:
    """Return a line with percentiles of latencies in milliseconds."""
    ordered = sorted(milliseconds)
    shares = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"), (0.999, "p99.9"))
    figures = "  ".join(f"{label} {percentile(ordered, share):.1f}" for share, label in shares)
    return f"{name:<38}{figures}  max {ordered[-1]:.1f} ms  ({len(ordered)} measured)"


def cpu_s(pid: int) -> float:
    """Return the processor time of a process and its children up to now, in seconds."""
    times = [process.cpu_times() for process in _with_children(pid)]
    return sum(time.user + time.system for time in times)


def machine_busy_s() -> float:
    """Return the processor time of all processes up to now, in seconds."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - times.iowait - times.guest - times.guest_nice)


def tree_resident_mb(pid: int) -> float:
    """Return the resident memory of a process and its children in MB."""
    return sum(resident_mb(process.pid) for process in _with_children(pid))


def tree_pids(pid: int) -> list[int]:
    """Return the ids of a process and its children."""
    return [process.pid for process in _with_children(pid)]


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process in MB, 0 when it has ended."""
    try:
        return float(psutil.Process(pid).memory_info().rss) / 2**20
    except psutil.NoSuchProcess:
        return 0.0


def proportional_mb(pid: int) -> float:
    """Return the proportional set size of a process in MB, 0 when it has ended.

    A page that n processes share counts as an n-th of a page: the sum over processes is what they take together. Where the system does not
    tell it, for example to another user, it is the resident memory, which counts such a page n times.
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return resident_mb(pid)
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _with_children(pid: int) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine()
    )
