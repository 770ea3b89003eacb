"""What the whole stack costs after its start and while nothing happens: processor time and memory of each process, and the largest job.

The log has events that the stack folds, compacts and checks after its start. Then it is left alone.
"""

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import psutil

from benchmarks.latency import wait_for_real_time
from benchmarks.support.deposits import BALANCE, CHANGELOG, Deposits, folded
from benchmarks.support.job_usage import WINDOW_S, jobs_measured
from benchmarks.support.report import machine_busy_s, print_environment, proportional_mb, resident_mb
from include.quality.verified_stores import verified_statuses
from include.settings import Settings
from include.status.measurement import read_stream_status
from include.stream.driver_launch import read_report
from stack.launchers import stream_driver
from stack.lifecycle import start
from stack.supervision.stray_processes import MARKER
from stack.supervision.supervisor import Supervisor, marker
from tests.support.temporary_stack import temporary_stack
from tests.support.waiting import wait_until

CUSTOMERS = 1_000
TIMEOUT_S = 300.0
# Those of a test's stack differ.
DEFAULTS = Settings.of()
USAGE_HEADING = f"{'process':<28}{'CPU s/s':>10}{'PSS MB':>12}{'RSS MB':>12}"


@dataclass(frozen=True)
class Usage:
    """Processor time in seconds, with that of children that have ended, and memory.

    memory_mb: the proportional set size, in which pages that processes share count once. resident_mb: each process counts all its pages.
    """

    cpu_s: float
    memory_mb: float
    resident_mb: float


def main() -> None:
    """Measure, and print the cost of each process, and of jobs after the start."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--events", type=int, default=20_000, help="events in the log at the start (20,000)"
    )
    arguments.add_argument(
        "--start-s", type=int, default=120, help="duration of the measurement from the start (120)"
    )
    arguments.add_argument(
        "--settle-s", type=int, default=420, help="time from the start until the second measurement (420)"
    )
    arguments.add_argument(
        "--seconds", type=int, default=300, help="duration of the second measurement (300)"
    )
    arguments.add_argument("--pace", default="balanced", help="pace of the stream (balanced)")
    arguments.add_argument("--standby", default="auto", help="whether there is a standby driver (auto)")
    options = arguments.parse_args()
    stack = temporary_stack(
        ("kafka", "registry"),
        stream_pace=options.pace,
        stream_standby=options.standby,
        lake_niceness=DEFAULTS.lake.niceness,
        airflow_start_delay_s=DEFAULTS.airflow.start_delay_s,
    )
    with stack as settings:
        print_environment(settings)
        deposits = Deposits(settings, CUSTOMERS)
        deposits.append_many(settings, options.events, seed=1)
        start(settings)
        up_s = time.monotonic()
        print_start(settings, options.start_s)
        wait_for_real_time(settings)
        wait_until(
            lambda: read_stream_status(settings).events_behind == 0, "all events are folded", TIMEOUT_S
        )
        time.sleep(max(0.0, up_s + options.settle_s - time.monotonic()))
        before, began_s, busy_s = usage_by_process(settings), time.monotonic(), machine_busy_s()
        time.sleep(options.seconds)
        after, busy_s = usage_by_process(settings), machine_busy_s() - busy_s
        print(f"idle for {options.seconds} s, {options.settle_s} s after the start")
        print_usage(before, after, time.monotonic() - began_s, busy_s)
        for one in verified_statuses(settings, BALANCE, time.time(), has_kafka=True):
            print(
                f"verified  {one.store}: the oldest event that is not verified is at most {one.age_s:,.0f} s old"
            )
        assert folded(settings, CHANGELOG)[0] == deposits.expected(), "balances are not exact"


def print_start(settings: Settings, seconds: int) -> None:
    """Print what each process, and each job, uses in the first seconds of a stack that has just started."""
    before, began_s, busy_s = usage_by_process(settings), time.monotonic(), machine_busy_s()
    with jobs_measured(settings) as jobs:
        time.sleep(seconds)
    after, busy_s = usage_by_process(settings), machine_busy_s() - busy_s
    print(f"the first {seconds} s after the start")
    print_usage(before, after, time.monotonic() - began_s, busy_s)
    for job, cpu_s in jobs.total_s().items():
        print(
            f"job       {job:<30}{cpu_s:>8.1f} CPU s, {cpu_s / seconds:.2f} cores; in its busiest {WINDOW_S:.0f} s {jobs.busiest(job):.2f} cores"
        )


def print_usage(before: dict[str, Usage], after: dict[str, Usage], elapsed_s: float, busy_s: float) -> None:
    """Print the cost of each process, and that of the whole machine."""
    # Of a process that has ended, or has another one in its place, nothing is known.
    shares = {
        name: max(0.0, used.cpu_s - (before[name].cpu_s if name in before else 0.0)) / elapsed_s
        for name, used in after.items()
    }
    print(USAGE_HEADING)
    for name, share in sorted(shares.items(), key=lambda item: -item[1]):
        print(usage_line(name, share, after[name]))
    share = busy_s / elapsed_s / (os.cpu_count() or 1)
    print(f"{'the whole machine':<28}{busy_s / elapsed_s:>10.3f}   {share:.1%} of its cores", flush=True)


def usage_line(name: str, share: float, used: Usage) -> str:
    """Return a line below USAGE_HEADING; `share` is the processor time per second."""
    return f"{name:<28}{share:>10.3f}{used.memory_mb:>12,.0f}{used.resident_mb:>12,.0f}"


def usage_by_process(settings: Settings) -> dict[str, Usage]:
    """Return what each part of the stack, with its children, has used up to now."""
    found: dict[str, Usage] = defaultdict(lambda: Usage(0.0, 0.0, 0.0))
    for name, process in _processes(settings):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        cpu_s = times.user + times.system + times.children_user + times.children_system
        used = found[name]
        found[name] = Usage(
            used.cpu_s + cpu_s,
            used.memory_mb + proportional_mb(process.pid),
            used.resident_mb + resident_mb(process.pid),
        )
    return found


def _processes(settings: Settings) -> Iterator[tuple[str, psutil.Process]]:
    """Yield every process of the stack with the name of the part that it belongs to."""
    parts = {state.pid: name for name, state in Supervisor(settings).states().items() if state.pid}
    driver, report = stream_driver.running(settings.home), read_report(settings.home)
    if driver is not None:
        parts[driver.pid] = "stream driver"
    if report is not None and report.standby_pid:
        parts[report.standby_pid] = "standby driver"
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARKER) == marker(settings.home):
                yield _part(process, parts), process
        except psutil.Error:
            continue


def _part(process: psutil.Process, parts: dict[int, str]) -> str:
    for ancestor in (process, *process.parents()):
        if ancestor.pid in parts:
            return parts[ancestor.pid]
        # No supervised process has started it.
        if any(part.endswith("job_server.py") for part in ancestor.cmdline()):
            return "job server"
    return "other"


if __name__ == "__main__":
    main()
