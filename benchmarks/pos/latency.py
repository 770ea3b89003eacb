"""Latency at a constant rate of invoices: invoice -> re-keyed by the route -> notification with the points of the card."""

from benchmarks.latency import wait_for_real_time
from benchmarks.pos.arrivals import Arrivals
from benchmarks.pos.exactness import require_exact
from benchmarks.pos.till_load import TillLoad
from benchmarks.support.report import cpu_s, latency_line, machine_busy_s, print_environment
from demo.log_tables import record_count
from demo.pos.branches import BRANCHES, LOYALTY, NOTIFICATIONS, Check
from demo.pos.dataset import SYSTEM
from include.settings import Settings
from include.status.measurement import read_stream_status
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

ARRIVAL_S = 60.0
START_S = 240.0


def run(pace: str, events_per_s: int, warm_up_s: int, seconds: int) -> None:
    """Measure at one pace, after a warm-up with the same load."""
    with temporary_stack(("kafka", "registry"), stream_pace=pace, systems=(SYSTEM.name,)) as settings:
        print_environment(settings)
        with stream_driver(settings) as driver:
            _measure(settings, driver.pid, events_per_s, warm_up_s, seconds)


def _measure(settings: Settings, driver_pid: int, events_per_s: int, warm_up_s: int, seconds: int) -> None:
    """Print the latencies and the processor time; fail unless every branch is exact."""
    pace = settings.stream.pace
    invoices = events_per_s * (warm_up_s + seconds)
    load, check = TillLoad(settings, invoices), Check(settings, invoices)
    wait_for_real_time(settings)
    load.run(events_per_s, warm_up_s)
    wait_until(
        lambda: _notified(settings) > 0 and read_stream_status(settings).events_behind == 0,
        "every branch has caught up",
        START_S,
    )
    began_s, busy_s = cpu_s(driver_pid), machine_busy_s()
    with Arrivals(settings, (LOYALTY.output, NOTIFICATIONS.output)) as arrivals:
        measured = load.run(events_per_s, seconds)
        driver_s, busy_s = cpu_s(driver_pid) - began_s, machine_busy_s() - busy_s
        load.run_rest()
        wait_until(lambda: _notified(settings) >= check.expected(NOTIFICATIONS), "notifications", ARRIVAL_S)
    _print(pace, load, measured, arrivals)
    print(f"{pace:<10}{driver_s / seconds:.2f} CPU s/s of the driver, {busy_s / seconds:.2f} of the machine")
    require_exact(settings, check)
    print(f"{pace:<10}exact: {', '.join(branch.name for branch in BRANCHES)}", flush=True)


def _notified(settings: Settings) -> int:
    return record_count(settings, NOTIFICATIONS.output)


def _print(pace: str, load: TillLoad, measured: range, arrivals: Arrivals) -> None:
    """Print the latency of the measured events, whole and of each step."""
    routed, notified = (arrivals.at_s[branch.output] for branch in (LOYALTY, NOTIFICATIONS))
    sent_s = {load.ids[number]: load.sent_s[number] for number in measured}
    # Only PRIME customers are notified.
    ids = [event_id for event_id in sent_s if event_id in notified and event_id in routed]
    assert ids, "no notification arrived of an invoice that was measured"
    steps = {
        "invoice -> notification": [notified[one] - sent_s[one] for one in ids],
        "invoice -> loyalty-invoices": [routed[one] - sent_s[one] for one in ids],
        "loyalty-invoices -> notification": [notified[one] - routed[one] for one in ids],
    }
    for name, seconds in steps.items():
        print(f"{pace:<10}{latency_line(name, [1000 * one for one in seconds])}", flush=True)
