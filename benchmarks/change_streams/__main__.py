"""The stream of changes to 500 clients of one node: latency from the changelog to each client, processor time and memory of the node."""

import argparse
import time
from decimal import Decimal

from benchmarks.change_streams.stream_clients import StreamClients
from benchmarks.support.deposits import low_latency_producer
from benchmarks.support.lookup_client import NodeConnection
from benchmarks.support.report import cpu_s, latency_line, print_environment, proportional_mb, tree_pids
from include.settings import Settings
from stack.lifecycle import start
from stack.supervision.supervisor import Supervisor
from tests.support.changelog_writer import ChangelogWriter
from tests.support.http.local_http import HTTP
from tests.support.temporary_stack import temporary_stack
from tests.support.waiting import wait_until

TARGET = "/api/read-models/balance/changes"
KEYS = 500
DEFAULT_RATES = (10, 50, 200)
DRAIN_S = 60.0
LOOKUP = "/api/customers.getBalance?customerId=key-0"
LOOKUPS_PER_S = 20


def main() -> None:
    """Measure each rate with all clients connected; every client must receive every change once."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--clients", type=int, default=500, help="number of clients (500)")
    arguments.add_argument("--rates", nargs="+", type=int, default=list(DEFAULT_RATES), help="changes/s")
    arguments.add_argument("--seconds", type=int, default=20, help="duration of each measurement (20)")
    options = arguments.parse_args()
    with temporary_stack(("kafka", "registry")) as settings:
        print_environment(settings)
        writer = ChangelogWriter(settings)
        writer.make_topics()
        writer.register_live()
        start(settings, only=("query_nodes",))
        url = f"http://127.0.0.1:{settings.query_ports[0]}"
        wait_until(lambda: HTTP.get(f"{url}/readyz").is_success, "the node is ready")
        measurement = Measurement(settings, writer)
        measurement.report_memory("without streams")
        measurement.connect(options.clients)
        measurement.report_memory(f"{options.clients} streams")
        for rate in options.rates:
            measurement.measure(rate, options.seconds)
        measurement.report_memory("afterwards")
        measurement.close()


class Measurement:
    """A node, the clients of its stream, and what was written to the changelog."""

    def __init__(self, settings: Settings, writer: ChangelogWriter) -> None:
        self._settings = settings
        self._writer = writer
        self._producer = low_latency_producer(settings.kafka_connection)
        self._lookups = NodeConnection(settings.query_ports[0])
        self._sent_s: list[float] = []
        self._clients: StreamClients | None = None
        pid = Supervisor(settings).states()["node-1-http"].pid
        assert pid is not None
        self._pid = pid

    def connect(self, count: int) -> None:
        """Connect the clients to the first node."""
        began_s = time.monotonic()
        port = self._settings.query_ports[0]
        self._clients = StreamClients(port, TARGET, count, self._sent_s.__getitem__)
        print(f"connected {count} streams in {time.monotonic() - began_s:.1f} s")

    def close(self) -> None:
        """Disconnect the clients."""
        self._of_clients().close()

    def measure(self, rate: int, seconds: int) -> None:
        """Write changes at a rate, and report their latency at all clients, and that of lookups meanwhile."""
        clients = self._of_clients()
        clients.latencies_ms.clear()
        before, lookups_ms = len(self._sent_s), []
        busy_s, began_s = cpu_s(self._pid), time.monotonic()
        next_lookup_s = began_s
        while (now_s := time.monotonic()) < began_s + seconds:
            if len(self._sent_s) - before < (now_s - began_s) * rate:
                self._write()
                continue
            if now_s >= next_lookup_s and before:
                next_lookup_s += 1 / LOOKUPS_PER_S
                lookups_ms.append(self._lookups.timed_get(LOOKUP))
            clients.receive()
        cpu = (cpu_s(self._pid) - busy_s) / (time.monotonic() - began_s)
        self._producer.flush()
        deadline_s = time.monotonic() + DRAIN_S
        expected = len(self._sent_s)
        while any(len(client.numbers) < expected for client in clients.clients):
            clients.receive()
            assert time.monotonic() < deadline_s, "changes are missing"
        whole = list(range(expected))
        assert all(sorted(client.numbers) == whole for client in clients.clients), "not every change once"
        sent = expected - before
        print(latency_line(f"{rate} changes/s", clients.latencies_ms))
        print(f"{'':<38}{sent:,} changes, {len(clients.latencies_ms):,} events; node: {cpu:.2f} CPU s/s")
        if lookups_ms:
            print(latency_line("  lookups meanwhile", lookups_ms))

    def report_memory(self, when: str) -> None:
        """Print the memory of the node's HTTP server and its workers."""
        total_mb = sum(proportional_mb(pid) for pid in tree_pids(self._pid))
        print(f"{'memory of the HTTP server, ' + when:<46}{total_mb:,.0f} MB")

    def _write(self) -> None:
        number = len(self._sent_s)
        self._sent_s.append(time.monotonic())
        key = f"key-{number % KEYS}"
        value = self._writer.value(key, Decimal("5.00"), number // KEYS + 1, source_offset=number)
        self._producer.produce(self._writer.topic, key=key, value=value)
        self._producer.poll(0)

    def _of_clients(self) -> StreamClients:
        assert self._clients is not None, "connect first"
        return self._clients


if __name__ == "__main__":
    main()
