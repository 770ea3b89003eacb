"""Time until a key among many events is explained, by the command and by a node's page; compared with what is served and with what was appended."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from benchmarks.quality import prove_event_table, wait_until_folded
from benchmarks.support.deposits import BALANCE, Deposits
from benchmarks.support.report import print_environment
from include.settings import CHECKOUT, Settings, settings_environment
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

ACCEPTED = 202
REQUEST_TIMEOUT_S = 60.0
TIMEOUT_S = 300.0


def main() -> None:
    """Append events, fold them, append them to their event table, prove it, and explain keys."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=2_000_000, help="events in the log (2,000,000)")
    parser.add_argument("--keys", type=int, default=100_000, help="customers (100,000)")
    parser.add_argument("--repeats", type=int, default=3, help="keys of each measurement (3)")
    parser.add_argument("--no-table", action="store_true", help="without an event table of the topic")
    parser.add_argument("--timeout", type=float, default=3600, help="timeout of folding in seconds (3600)")
    given = parser.parse_args()
    with temporary_stack(("kafka", "registry", "query_nodes")) as settings:
        print_environment(settings)
        deposits = Deposits(settings, given.keys)
        deposits.append_many(settings, given.events, seed=1)
        with stream_driver(settings):
            wait_until_folded(settings, given.timeout)
            if not given.no_table:
                prove_event_table(settings)
            numbers = [number for number, _ in deposits.appended.most_common(2 * given.repeats)]
            for name, explain, chosen in (
                ("command", by_command, numbers[: given.repeats]),
                ("page", by_node, numbers[given.repeats :]),
            ):
                measure(settings, deposits, f"{name:<8} {given.events:>11,} events", explain, chosen)


def measure(
    settings: Settings,
    deposits: Deposits,
    name: str,
    explain: Callable[[Settings, str], dict[str, Any]],
    numbers: list[int],
) -> None:
    """Explain a key of each customer, compare it with what is served and what was appended, and print the median duration."""
    seconds, read = [], 0
    for number in numbers:
        key = deposits.keys[number].decode()
        expected = deposits.expected()[key]
        wait_until(lambda key=key, expected=expected: served(settings, key) == expected, "served", TIMEOUT_S)  # type: ignore[misc]
        began_s = time.monotonic()
        found = explain(settings, key)
        seconds.append(time.monotonic() - began_s)
        shown, read = found["shown"], found["recordsRead"]
        assert not found["difference"], found["difference"]
        assert (shown["eventCount"], shown["state"]["amount"]) == expected, f"{key}: {shown}, not {expected}"
    each = ", ".join(f"{one:.2f}" for one in seconds)
    print(
        f"explain   {name}: {statistics.median(seconds):6.2f} s (median of {each}); {read:,} records read",
        flush=True,
    )


def by_command(settings: Settings, key: str) -> dict[str, Any]:
    """Return what the command prints."""
    command = [sys.executable, "-m", "cli", "explain", BALANCE.name, key, "--json"]
    environment = {**os.environ, **settings_environment(settings)}
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, check=True, stdout=subprocess.PIPE)
    return parsed(done.stdout)


def by_node(settings: Settings, key: str) -> dict[str, Any]:
    """Return what a node answers, asked until the explanation is there."""
    while True:
        status, answer = get(settings, f"/explain?readModel={BALANCE.name}&key={key}")
        if status != ACCEPTED:
            return answer
        time.sleep(0.1)


def served(settings: Settings, key: str) -> tuple[int, Decimal] | None:
    """Return the number of events and the balance in the record that a node serves; None without one."""
    try:
        _, record = get(settings, f"/api/read-models/{BALANCE.name}/records/{key}")
    except urllib.error.HTTPError:
        return None
    return record["eventCount"], record["state"]["amount"]


def get(settings: Settings, path: str) -> tuple[int, dict[str, Any]]:
    """Return the status and the JSON of a node's answer."""
    url = f"http://127.0.0.1:{settings.query_ports[0]}{path}"
    with urllib.request.urlopen(url, timeout=REQUEST_TIMEOUT_S) as response:
        return response.status, parsed(response.read())


def parsed(text: bytes) -> dict[str, Any]:
    """Parse JSON; numbers with decimal places are exact."""
    found: dict[str, Any] = json.loads(text, parse_float=Decimal)
    return found


if __name__ == "__main__":
    main()
