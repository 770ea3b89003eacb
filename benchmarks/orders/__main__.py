"""What stays of many orders of which few are active: rows of Spark's state, changelog after compaction, and the nodes' stores.

The shift is loaded in parts, each of which the driver folds before the next one comes: between two parts, time passes for the state. The
active orders of both nodes are compared with the log at the end.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from benchmarks.support.report import cpu_s, print_environment
from demo.log_tables import messages
from demo.orders.couriers import Shift, Update, load
from demo.orders.lookups import list_active
from demo.orders.oracle import Oracle
from include.kafka.topics import admin_client
from include.nodes.local_nodes import local_nodes
from include.settings import Settings
from include.status.measurement import read_stream_status
from include.stream.query_reports import BatchProgress, read_queries
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

CHANGELOG = "order-location.v1.changelog"
QUERY = "order-location/v1"
TIMEOUT_S = 1_800.0
COMPACTION_S = 150.0
# The unit of `st_blocks`.
BLOCK_BYTES = 512
# The state's size is steady once it has been the same in this many readings, 3 s apart.
STEADY = 4
# Kafka keeps removals for a day by default, so that slow readers see them: after a million orders in minutes, all of them.
COMPACTS_AT_ONCE = {
    "delete.retention.ms": "1000",
    "segment.bytes": "2097152",
    "segment.ms": "20000",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "20000",
}


@dataclass(frozen=True)
class Remains:
    """What there is after a part of the shift. seconds: since its first update was appended."""

    orders: int
    state_rows: int
    state_mb: float
    store_mb: float
    seconds: float


def main() -> None:
    """Load a shift, and print what stays after each part."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--orders", type=int, default=1_000_000, help="number of orders (1000000)")
    arguments.add_argument("--active", type=int, default=1_000, help="active at a time (1000)")
    arguments.add_argument("--parts", type=int, default=10, help="parts in which they are loaded (10)")
    arguments.add_argument(
        "--update-every-s", type=int, default=1_800, help="seconds between the moves of an order (1800)"
    )
    options = arguments.parse_args()
    hours = options.orders / options.active * Shift.minutes / 60
    shift = Shift(
        datetime.now(UTC) - timedelta(hours=hours),
        options.orders,
        options.active,
        update_every_s=options.update_every_s,
    )
    with temporary_stack(
        ("kafka", "registry", "query_nodes"), systems=("orders",), stream_real_time_interval_s=5
    ) as settings:
        print_environment(settings)
        print(
            f"shift     {options.orders:,} orders in {hours:.0f} h, {options.active:,} active at a time",
            flush=True,
        )
        with stream_driver(settings) as driver:
            wait_until(lambda: read_stream_status(settings).state == "running", "the driver runs", TIMEOUT_S)
            compact_at_once(settings)
            began_s, began_cpu_s, count = time.monotonic(), cpu_s(driver.pid), 0
            for part in parts(shift, options.parts):
                count += load(settings, part)
                wait_until(
                    lambda: read_stream_status(settings).events_behind == 0, "all are folded", TIMEOUT_S
                )
                print_remains(remains(settings, part[-1].number + 1, time.monotonic() - began_s))
            seconds = time.monotonic() - began_s
            print(
                f"folded    {count:,} updates in {seconds:.0f} s with the load, {count / seconds:,.0f} a second; "
                f"{cpu_s(driver.pid) - began_cpu_s:.0f} CPU s of the driver"
            )
            require_exact(settings)
            print_changelog(settings)


def parts(shift: Shift, number: int) -> Iterator[list[Update]]:
    """Yield the updates up to the last order's, in parts of equal duration."""
    end_ms = shift.began_ms + round(shift.orders * shift.interval_ms)
    length_ms = (end_ms - shift.began_ms) // number + 1
    for _, updates in groupby(shift.updates(), key=lambda u: (u.written_ms - shift.began_ms) // length_ms):
        part = [update for update in updates if update.written_ms < end_ms]
        if part:
            yield part


def compact_at_once(settings: Settings) -> None:
    """Let Kafka compact the changelog within seconds, and remove removals."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in COMPACTS_AT_ONCE.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, CHANGELOG, incremental_configs=entries)
    # Its futures fail once the client is gone.
    admin = admin_client(settings.kafka_connection)
    for done in admin.incremental_alter_configs([resource]).values():
        done.result()


def remains(settings: Settings, orders: int, seconds: float) -> Remains:
    """Return what there is once the state of old orders has been removed."""
    sizes: list[int] = []

    def is_steady() -> bool:
        sizes.append(batch(settings).state_rows)
        return len(sizes) > STEADY and sizes[-STEADY:] == [sizes[-1]] * STEADY

    wait_until(is_steady, "the state's size is steady", TIMEOUT_S, poll_s=3.0)
    found = batch(settings)
    assert found.dropped_events == 0, "an update came later than its state was kept"
    stores = sum(folder_bytes(folder) for folder in (settings.home / "nodes").iterdir())
    return Remains(orders, found.state_rows, found.state_bytes / 1e6, stores / 1e6, seconds)


def batch(settings: Settings) -> BatchProgress:
    """Return the last batch of the fold."""
    queries = read_queries(settings.kafka_connection)
    return next((one.last_batch for one in queries if one.query == QUERY), BatchProgress())


def folder_bytes(folder: Path) -> int:
    """Return the bytes that the files of a folder take on the disk."""
    return sum(path.stat().st_blocks * BLOCK_BYTES for path in folder.rglob("*") if path.is_file())


def print_remains(found: Remains) -> None:
    """Print a line."""
    print(
        f"after     {found.orders:>9,} orders: {found.state_rows:>8,} rows of state, {found.state_mb:6.1f} MB; stores of both nodes "
        f"{found.store_mb:6.1f} MB; {found.seconds:5.0f} s",
        flush=True,
    )


def require_exact(settings: Settings) -> None:
    """Compare both nodes with the log."""
    oracle = Oracle(settings)
    expected = oracle.active()
    nodes = local_nodes(settings)
    wait_until(
        lambda: all(list_active(node) == expected for node in nodes), "both nodes are exact", TIMEOUT_S
    )
    counts = oracle.counts()
    print(
        f"exact     {len(expected):,} active of {counts.orders:,} orders on both nodes; {counts.late:,} updates too late"
    )


def print_changelog(settings: Settings) -> None:
    """Wait until compaction has removed most records, and print what is left."""
    before = _records(settings)
    smallest = before
    deadline_s = time.monotonic() + COMPACTION_S
    while time.monotonic() < deadline_s:
        # Only closed segments are compacted: some further records close them.
        time.sleep(15)
        now = _records(settings)
        if now == smallest and now < before:
            break
        smallest = min(now, smallest)
    states, removals = smallest
    size = folder_bytes(settings.home / "kafka") / 1e6 if (settings.home / "kafka").exists() else 0.0
    print(
        f"changelog {states:,} state records and {removals:,} removals after compaction; Kafka has {size:.0f} MB in all"
    )


def _records(settings: Settings) -> tuple[int, int]:
    values = [message.value() is not None for message in messages(settings, CHANGELOG)]
    return sum(values), len(values) - sum(values)


if __name__ == "__main__":
    main()
