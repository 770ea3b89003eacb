"""Catch-up: every branch writes what it must for an existing log, from its first event; all branches at once, and each alone.

A rate is that from a branch's first record to its last. What comes before is start-up: of the JVM, of its queries, and of the first batch.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka.admin import AdminClient

from benchmarks.pos.branch_rates import written_span
from benchmarks.pos.branch_subsets import SUBSETS, declared_alone
from benchmarks.support.report import cpu_s, print_environment, resident_mb
from demo.log_tables import record_count
from demo.pos.branches import BRANCHES, LOYALTY, NOTIFICATIONS, TILLS, TREND, Branch, Check
from demo.pos.dataset import SYSTEM, read_sales
from demo.pos.loading import TOPIC, load
from include.declarations.load import read_model
from include.settings import Settings
from include.waiting import wait_for
from tests.support.stream_process import states
from tests.support.temporary_stack import temporary_home, temporary_settings, temporary_stack
from tests.support.unsupervised_driver import log_path, stream_driver
from tests.support.waiting import wait_until

TIMEOUT_S = 1_800.0
POLL_S = 0.5
CHANGELOG = "loyalty.v1.changelog"


def run(invoices: int, alone: Sequence[str]) -> None:
    """Load the oldest invoices, all if 0, and measure all branches at once, then each of these alone."""
    with temporary_stack(("kafka", "registry")) as servers:
        print_environment(servers)
        began_s = time.monotonic()
        appended = load(servers, TOPIC, read_sales(invoices)).appended
        print(f"loaded    {appended:,} events in {time.monotonic() - began_s:.0f} s", flush=True)
        check = Check(servers, invoices)
        _measure(servers, check, "all", systems=(SYSTEM.name,))
        for name in alone:
            _delete_outputs(servers)
            with declared_alone(name) as folder:
                _measure(servers, check, name, folder)


def _measure(
    servers: Settings, check: Check, name: str, folder: Path | None = None, **settings: object
) -> None:
    """Run a driver for all branches or one subset until it has written everything, in a home of its own; print and check."""
    branches = BRANCHES[1:] if folder is None else SUBSETS[name][1]
    external = {
        "kafka_bootstrap": servers.kafka.bootstrap_servers,
        "schema_registry_url": servers.registry.url,
    }
    if folder is not None:
        settings["read_models_dir"] = folder
    with ExitStack() as stack:
        home = stack.enter_context(temporary_home(lambda: False))
        own = temporary_settings(home, **external, **settings)
        launched_s, peak_mb, used_s = time.time(), 0.0, 0.0
        process = stack.enter_context(stream_driver(own))

        def is_written() -> bool:
            nonlocal peak_mb, used_s
            assert process.poll() is None, "the driver ended: " + log_path(own).read_text()[-2_000:]
            peak_mb, used_s = max(peak_mb, resident_mb(process.pid)), cpu_s(process.pid)
            return all(record_count(own, branch.output) >= check.expected(branch) for branch in branches)

        wait_until(is_written, f"{name} is written", TIMEOUT_S, POLL_S)
        if NOTIFICATIONS in branches:
            _require_points(own, check)
    for branch in branches:
        print(_line(servers, check, name, branch, launched_s), flush=True)
    if NOTIFICATIONS in branches:
        _print_fold(servers, check, name, launched_s)
    print(f"{name:<10}driver {peak_mb:,.0f} MB at most, {used_s:.0f} s of processor time", flush=True)
    for branch in (TILLS, *branches):
        result = check.compare(branch)
        assert result.is_exact, result
    print(f"{name:<10}exact: {', '.join(branch.name for branch in branches)}", flush=True)


def _line(settings: Settings, check: Check, name: str, branch: Branch, launched_s: float) -> str:
    span = written_span(settings, branch.output)
    events = check.expected(LOYALTY if branch is NOTIFICATIONS else TILLS)
    what = "line items" if branch is TREND else "records"
    return (
        f"{name:<10}{branch.name:<14}{events / span.seconds:>9,.0f} events/s read{span.records / span.seconds:>10,.0f} {what}/s written"
        f"  ({span.records:,} in {span.seconds:.1f} s, the first {span.first_s - launched_s:.1f} s after the launch)"
    )


def _print_fold(settings: Settings, check: Check, name: str, launched_s: float) -> None:
    span, events = written_span(settings, CHANGELOG), check.expected(LOYALTY)
    print(
        f"{name:<10}{'loyalty, fold':<14}{events / span.seconds:>9,.0f} events/s read"
        f"  ({events:,} in {span.seconds:.1f} s, the first state {span.first_s - launched_s:.1f} s after the launch)",
        flush=True,
    )


def _require_points(settings: Settings, check: Check) -> None:
    """Wait until the points of every card are folded; fail unless they become exact."""
    model = read_model("loyalty", settings.declaration_folders)

    def is_exact() -> bool:
        found = states(settings, model, CHANGELOG)
        fields = ("points", "spent", "invoices", "cancellations")
        rows = [(card, *(state.state[name] for name in fields)) for card, state in found.items()]
        return check.compare_points("changelog", rows).is_exact

    wait_until(is_exact, "the points of every card are exact", TIMEOUT_S, POLL_S)


def _delete_outputs(settings: Settings) -> None:
    """Delete every topic except that of the tills, and Kafka's own."""
    admin = AdminClient(settings.kafka_connection.client_settings)

    def are_deleted() -> bool:
        listed = admin.list_topics(timeout=10).topics
        found = [topic for topic in listed if topic != TOPIC and not topic.startswith("__")]
        for deleted in admin.delete_topics(found, operation_timeout=30).values() if found else ():
            deleted.result()
        return not found

    assert wait_for(are_deleted, timeout_s=60, poll_s=0.5), "topics were not deleted"
