"""Restart of a killed materializer over a large store: the time until it applies records again, and until all records are checked.

The measured node is alone: nobody else answers meanwhile. Loading the store takes most of the run.
"""

import argparse
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

from benchmarks.support.report import print_environment
from include.settings import Settings
from query_api.store.lmdb.layout import DATA_FILE
from tests.support.changelog_writer import ChangelogWriter
from tests.support.node_stack import ExtraNode
from tests.support.temporary_stack import free_ports, temporary_stack
from tests.support.waiting import wait_until

NODE = "restarted"
CUSTOMER = "the customer whose balance changes"
FLUSH_RECORDS = 500_000
LOAD_TIMEOUT_S = 1800.0
RESTART_TIMEOUT_S = 900.0
CHECKED = re.compile(r"the check took (\d+\.\d) s")


def main() -> None:
    """Load the store, then kill and restart the materializer several times."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--keys", type=int, default=500_000, help="keys in the store (500,000)")
    arguments.add_argument("--restarts", type=int, default=3, help="restarts to measure (3)")
    arguments.add_argument(
        "--wait-for-check",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="also measure the check of all records beside the running materializer (yes)",
    )
    options = arguments.parse_args()
    with temporary_stack(("kafka", "registry")) as settings:
        print_environment(settings)
        writer = ChangelogWriter(settings)
        writer.make_topics()
        writer.register_live()
        fill(writer, options.keys)
        with running_node(settings) as node:
            wait_until(
                lambda: records(node) >= options.keys, "the store is loaded", LOAD_TIMEOUT_S, poll_s=1.0
            )
            apply_one(node, writer, 2)
            size_mb = (settings.home / "nodes" / NODE / "balance.v1" / DATA_FILE).stat().st_size / 2**20
            print(f"store     {options.keys:>9,} keys, {size_mb:,.0f} MB")
            for number in range(options.restarts):
                restart(node, writer, number + 3)
                if options.wait_for_check:
                    print(
                        f"check     {checked_s(settings, number + 1):>9.1f} s, beside the running materializer"
                    )


def fill(writer: ChangelogWriter, keys: int) -> None:
    """Append one state record for each key."""
    value = writer.value("key 0", Decimal("5.00"), 1, 0)
    for number in range(keys):
        writer.write_raw(b"key %d" % number, value)
        if (number + 1) % FLUSH_RECORDS == 0:
            writer.flush()
    writer.write(CUSTOMER, Decimal("1.00"), 1)
    writer.flush()


@contextmanager
def running_node(settings: Settings) -> Iterator[ExtraNode]:
    """Run one node; it has no supervisor."""
    node = ExtraNode(settings, NODE, free_ports(1)[0])
    try:
        yield node
    finally:
        node.stop()


def records(node: ExtraNode) -> int:
    """Return how many records of the changelog the node has read."""
    reports = node.own_answer("/api/partitions").json()
    return sum(report["position"] or 0 for report in reports)


def apply_one(node: ExtraNode, writer: ChangelogWriter, amount: int) -> None:
    """Append a record, and wait until the node answers with it."""
    writer.write(CUSTOMER, Decimal(amount), amount)
    writer.flush()
    path = "/api/customers.getBalance?customerId=" + CUSTOMER.replace(" ", "%20")
    wait_until(
        lambda: node.own_answer(path).text == f'{{"amount":{amount}.00}}',
        "the record is applied",
        RESTART_TIMEOUT_S,
        poll_s=0.01,
    )


def restart(node: ExtraNode, writer: ChangelogWriter, amount: int) -> None:
    """Kill the materializer, start it again, and print how long it takes until it applies a record."""
    node.restart("materializer", signal.SIGKILL)
    began_s = time.monotonic()
    apply_one(node, writer, amount)
    print(
        f"restart   {time.monotonic() - began_s:>9.1f} s from the process's start until a new record is answered"
    )


def checked_s(settings: Settings, count: int) -> float:
    """Wait until the node's log reports this many checks, and return how long the newest took."""
    log = Path(settings.home / "logs" / f"{NODE}.log")

    def found() -> list[str]:
        return CHECKED.findall(log.read_text(encoding="utf-8"))

    wait_until(lambda: len(found()) >= count, "all records are checked", RESTART_TIMEOUT_S)
    return float(found()[-1])


if __name__ == "__main__":
    main()
