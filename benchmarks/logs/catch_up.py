"""Catch-up: every branch writes what it must for an existing log, from its first line, all branches at once.

A rate is that from a branch's first record to its last. What comes before is start-up: of the JVM, of its queries, and of the first batch.
"""

import time

from benchmarks.pos.branch_rates import written_span
from benchmarks.support.report import cpu_s, print_environment, resident_mb
from demo.logs.catalogue import append_entries, first_entries, name_of
from demo.logs.comparison import BRANCHES, STATES, Check
from demo.logs.lines import PRODUCTS, log_lines, product_id
from demo.logs.loading import load_lines
from include.declarations.load import read_model
from include.settings import Settings
from include.settings.systems import system_folder
from tests.support.stream_process import states
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import log_path, stream_driver
from tests.support.waiting import wait_until

TIMEOUT_S = 1_800.0
POLL_S = 2.0
TOPICS = ("product-views", "browser-events", "browser-windows", "captcha-requests")
SYSTEM = (system_folder("logs"),)


def run(lines: int) -> None:
    """Load this number of lines, and measure how fast the branches write what they make of them."""
    with temporary_stack(("kafka", "registry"), systems=("logs",)) as settings:
        print_environment(settings)
        append_entries(settings, first_entries())
        began_s = time.monotonic()
        load_lines(settings, lines)
        print(f"loaded    {lines:,} lines in {time.monotonic() - began_s:.0f} s", flush=True)
        names = {product_id(number): name_of(number) for number in range(1, PRODUCTS + 1)}
        check = Check(settings, log_lines(lines), names)
        launched_s, peak_mb, used_s = time.time(), 0.0, 0.0
        with stream_driver(settings) as process:

            def is_exact() -> bool:
                nonlocal peak_mb, used_s
                assert process.poll() is None, "the driver ended: " + log_path(settings).read_text()[-2_000:]
                peak_mb, used_s = max(peak_mb, resident_mb(process.pid)), cpu_s(process.pid)
                return _is_exact(settings, check)

            wait_until(is_exact, "every branch is exact", TIMEOUT_S, POLL_S)
        for topic in TOPICS:
            _print_span(settings, topic, lines, launched_s)
        print(f"driver    {peak_mb:,.0f} MB at most, {used_s:.0f} s of processor time", flush=True)
        print(f"exact     {', '.join([*(branch.name for branch in BRANCHES), *STATES])}", flush=True)


def _is_exact(settings: Settings, check: Check) -> bool:
    check.read()
    if not all(check.compare(branch).is_exact for branch in BRANCHES):
        return False
    for name in STATES:
        found = states(settings, read_model(name, SYSTEM), f"{name}.v1.changelog")
        if not check.compare_states(name, {key: record.state for key, record in found.items()}).is_exact:
            return False
    return True


def _print_span(settings: Settings, topic: str, lines: int, launched_s: float) -> None:
    span = written_span(settings, topic)
    print(
        f"{topic:<20}{lines / span.seconds:>9,.0f} lines/s read{span.records / span.seconds:>10,.0f} records/s written"
        f"  ({span.records:,} in {span.seconds:.1f} s, the first {span.first_s - launched_s:.1f} s after the launch)",
        flush=True,
    )
