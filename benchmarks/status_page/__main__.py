"""What people who watch the status page cost its node: processor time, the page's own answers, and lookups meanwhile."""

import argparse
import json
import threading
import time
from http import HTTPStatus

from benchmarks.latency import wait_for_real_time
from benchmarks.support.deposits import Deposits
from benchmarks.support.lookup_client import NodeConnection
from benchmarks.support.report import cpu_s, latency_line, print_environment, proportional_mb, tree_pids
from include.settings import Settings
from include.status.measurement import read_stream_status
from stack.supervision.supervisor import Supervisor
from tests.support.temporary_stack import temporary_stack
from tests.support.waiting import wait_until

CUSTOMERS = 1_000
TIMEOUT_S = 300.0
# As status.js asks.
STATUS_INTERVAL_S, HISTORY_INTERVAL_S = 2.0, 10.0
HISTORY = "history"
LOOKUP = "/api/customers.getBalance?customerId=customer-1"
LOOKUPS_PER_S = 20


def main() -> None:
    """Measure a node without viewers and with each number of them."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--viewers", nargs="+", type=int, default=[0, 1, 50, 200], help="viewers of the page"
    )
    arguments.add_argument("--events", type=int, default=20_000, help="events to fold first (20,000)")
    arguments.add_argument("--seconds", type=int, default=30, help="duration of each measurement (30)")
    options = arguments.parse_args()
    with temporary_stack() as settings:
        print_environment(settings)
        Deposits(settings, CUSTOMERS).append_many(settings, options.events, seed=1)
        wait_for_real_time(settings)
        wait_until(
            lambda: read_stream_status(settings).events_behind == 0, "all events are folded", TIMEOUT_S
        )
        for viewers in options.viewers:
            measure(settings, viewers, options.seconds)


def measure(settings: Settings, viewers: int, seconds: int) -> None:
    """Watch the page with a number of viewers, and print what it costs."""
    pid = Supervisor(settings).states()["node-1-http"].pid
    assert pid is not None
    watching = Viewers(settings.query_ports[0], viewers)
    watching.warm_up()
    lookups = NodeConnection(settings.query_ports[0])
    busy_s, began_s = cpu_s(pid), time.monotonic()
    lookups_ms = []
    while time.monotonic() < began_s + seconds:
        lookups_ms.append(lookups.timed_get(LOOKUP))
        time.sleep(1 / LOOKUPS_PER_S)
    cpu = (cpu_s(pid) - busy_s) / (time.monotonic() - began_s)
    answers_ms = watching.stop()
    lookups.close()
    memory_mb = sum(proportional_mb(one) for one in tree_pids(pid))
    print(f"{viewers} viewers: node's HTTP server {cpu:.3f} CPU s/s, {memory_mb:,.0f} MB")
    if answers_ms:
        print(latency_line("  status", answers_ms))
    print(latency_line("  lookups meanwhile", lookups_ms), flush=True)


class Viewers:
    """Open status pages: each is a thread with its own connection. Every answer must have all sections that it asks for."""

    def __init__(self, port: int, count: int) -> None:
        connection = NodeConnection(port)
        names = list(json.loads(connection.get("/api/status")[1])["sections"])
        connection.close()
        self._port = port
        self._status = [name for name in names if name != HISTORY]
        self._answers_ms: list[float] = []
        self._failures: list[str] = []
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._watch, args=(STATUS_INTERVAL_S * number / max(count, 1),), daemon=True
            )
            for number in range(count)
        ]

    def warm_up(self) -> None:
        """Open all pages, and forget how long their first answers took."""
        for thread in self._threads:
            thread.start()
        time.sleep(2 * STATUS_INTERVAL_S)
        self._answers_ms.clear()

    def stop(self) -> list[float]:
        """Close all pages; return the duration of every answer in milliseconds."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert not self._failures, self._failures[0]
        return list(self._answers_ms)

    def _watch(self, delay_s: float) -> None:
        connection = NodeConnection(self._port)
        self._stop.wait(delay_s)
        history_s = time.monotonic()
        while not self._stop.is_set():
            self._ask(connection, self._status)
            if time.monotonic() >= history_s:
                history_s += HISTORY_INTERVAL_S
                self._ask(connection, [HISTORY])
            self._stop.wait(STATUS_INTERVAL_S)
        connection.close()

    def _ask(self, connection: NodeConnection, names: list[str]) -> None:
        began_s = time.perf_counter()
        status, body = connection.get(f"/api/status?sections={','.join(names)}")
        self._answers_ms.append((time.perf_counter() - began_s) * 1000)
        document = json.loads(body)
        lacking = [name for name in names if document["sections"].get(name, {}).get("data") is None]
        if status != HTTPStatus.OK or lacking:
            self._failures.append(f"status {status}, without {lacking}: {body[:500]!r}")


if __name__ == "__main__":
    main()
