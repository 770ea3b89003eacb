"""What the whole stack costs with the balance and pos: processor time and memory of each process, idle and with invoices."""

import os
import time
from collections.abc import Callable

from benchmarks.idle import USAGE_HEADING, Usage, usage_by_process, usage_line
from benchmarks.latency import wait_for_real_time
from benchmarks.pos.exactness import require_exact
from benchmarks.pos.till_load import TillLoad
from benchmarks.support.report import machine_busy_s, print_environment
from demo.pos.branches import BRANCHES, Check
from demo.pos.dataset import SYSTEM
from include.settings import Settings
from include.status.measurement import read_stream_status
from tests.support.temporary_stack import temporary_stack
from tests.support.waiting import wait_until

TIMEOUT_S = 300.0


def run(events_per_s: int, warm_up_s: int, seconds: int) -> None:
    """Measure the stack idle, then at this rate of invoices."""
    with temporary_stack(systems=(SYSTEM.name,), stream_standby="auto") as settings:
        print_environment(settings)
        _measure_both(settings, events_per_s, warm_up_s, seconds)
    print(f"exact     {', '.join(branch.name for branch in BRANCHES)}", flush=True)


def _measure_both(settings: Settings, events_per_s: int, warm_up_s: int, seconds: int) -> None:
    invoices = events_per_s * (2 * warm_up_s + seconds)
    load, check = TillLoad(settings, invoices), Check(settings, invoices)
    wait_for_real_time(settings)
    load.run(events_per_s, warm_up_s)
    wait_until(
        lambda: read_stream_status(settings).events_behind == 0, "every branch has caught up", TIMEOUT_S
    )
    time.sleep(warm_up_s)
    _measure(settings, "idle", seconds, time.sleep)
    load.run(events_per_s, warm_up_s)
    _measure(settings, f"{events_per_s} invoices/s", seconds, lambda s: load.run(events_per_s, s))
    load.run_rest()
    require_exact(settings, check)


def _measure(settings: Settings, name: str, seconds: int, during: Callable[[float], object]) -> None:
    """Print the cost of each process over a time in which something happens."""
    before, began_s, busy_s = usage_by_process(settings), time.monotonic(), machine_busy_s()
    during(seconds)
    elapsed_s = time.monotonic() - began_s
    after, busy_s = usage_by_process(settings), machine_busy_s() - busy_s
    shares = {part: (used.cpu_s - before[part].cpu_s) / elapsed_s for part, used in after.items()}
    print(f"{name}:\n{USAGE_HEADING}")
    for part, share in sorted(shares.items(), key=lambda item: -item[1]):
        print(usage_line(part, share, after[part]))
    total = Usage(
        sum(used.cpu_s for used in after.values()),
        sum(used.memory_mb for used in after.values()),
        sum(used.resident_mb for used in after.values()),
    )
    print(usage_line("all of the stack", sum(shares.values()), total))
    share = busy_s / elapsed_s / (os.cpu_count() or 1)
    print(f"{'the whole machine':<28}{busy_s / elapsed_s:>10.3f}   {share:.1%} of its cores", flush=True)
