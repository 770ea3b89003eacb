"""Latency at 1,000 events/s: produced -> in the changelog, and acknowledged -> served by an HTTP lookup on either node."""

import argparse
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from decimal import Decimal
from http import HTTPStatus

from confluent_kafka import OFFSET_END, Consumer, Message, Producer, TopicPartition

from benchmarks.support.deposits import BALANCE, CHANGELOG, Deposits, folded, low_latency_producer
from benchmarks.support.lookup_client import NodeConnection
from benchmarks.support.report import latency_line, print_environment
from include.kafka.state_record import decode_state_record
from include.settings import Settings
from include.status.measurement import read_stream_status
from include.stream.pace import PACES
from stack.lifecycle import start
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

EVENTS_PER_S = 1_000
CUSTOMERS = 10_000
# The JVM's compiler needs about a minute of this load to warm up; the measurement starts afterwards.
WARM_UP_S = 75
PROBES_PER_S = 20
PROBE_THREADS = 4
START_TIMEOUT_S = 180
LOOKUP_TIMEOUT_S = 10.0


def main() -> None:
    """Measure both latencies, one after the other, because the query nodes would compete for CPU time."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--seconds",
        type=int,
        default=60,
        help="duration of each measurement: at least one interval of commits (60)",
    )
    arguments.add_argument("--pace", choices=PACES, default="latency", help="FOLDLAKE_STREAM_PACE (latency)")
    options = arguments.parse_args()
    seconds = options.seconds
    with temporary_stack(("kafka", "registry"), stream_pace=options.pace) as settings:
        if seconds < settings.stream.real_time_interval_s:
            # Whether a shorter measurement has a commit, which holds events for a moment, would be chance.
            arguments.error(
                f"--seconds: at least {settings.stream.real_time_interval_s}, the interval of commits"
            )
        print_environment(settings)
        load = Load(settings)
        with stream_driver(settings):
            wait_for_real_time(settings)
            load.run(WARM_UP_S)
            load.run(seconds, observe=True)
            print(latency_line("produced -> changelog", load.latencies_ms), flush=True)
            start(settings, only=("query_nodes",))
            load.run(WARM_UP_S // 2)
            probes = Probes(settings)
            load.run(seconds, during=probes.run)
            for port, latencies in sorted(probes.latencies_ms.items()):
                print(latency_line(f"acknowledged -> lookup on {port}", latencies))
            every = [latency for latencies in probes.latencies_ms.values() for latency in latencies]
            print(latency_line("acknowledged -> lookup, both", every))
        found, _ = folded(settings)
        expected = load.deposits.expected() | probes.deposits.expected()
        assert found == expected, "the balances are not exact"
        print(f"exact     {sum(count for count, _ in found.values()):,} events of {len(found):,} customers")


def wait_for_real_time(settings: Settings) -> None:
    """Wait until the driver is in real-time mode."""
    wait_until(
        lambda: read_stream_status(settings).state == "running",
        "the driver runs",
        START_TIMEOUT_S,
        poll_s=0.5,
    )


class Load:
    """A constant-rate producer and a changelog consumer, each in a thread of this process.

    matched: when each observed event was produced, and when it was seen on the changelog (seconds of the Unix clock).
    """

    def __init__(self, settings: Settings, events_per_s: int = EVENTS_PER_S) -> None:
        self.deposits = Deposits(settings, CUSTOMERS)
        self.matched: list[tuple[float, float]] = []
        self._settings = settings
        self._events_per_s = events_per_s
        self._random = random.Random(1)
        self._sent_s: dict[tuple[int, int], float] = {}
        self._seen: list[tuple[float, bytes]] = []
        self._done = threading.Event()

    @property
    def latencies_ms(self) -> list[float]:
        """The latency of each observed event in milliseconds."""
        return [(seen_s - sent_s) * 1000 for sent_s, seen_s in self.matched]

    def run(
        self, seconds: int, *, observe: bool = False, during: Callable[[threading.Event], None] | None = None
    ) -> None:
        """Produce for `seconds`; `observe` measures each event, `during` runs in parallel until its event is set."""
        self._done.clear()
        threads = [threading.Thread(target=self._observe)] if observe else []
        threads += [threading.Thread(target=during, args=(self._done,))] if during else []
        for thread in threads:
            thread.start()
        self._produce(seconds)
        time.sleep(2 if observe else 0)
        self._done.set()
        for thread in threads:
            thread.join()
        if observe:
            self._match()

    def _produce(self, seconds: int) -> None:
        producer = low_latency_producer(self._settings.kafka_connection)
        began_s = time.time()
        for index in range(self._events_per_s * seconds):
            ahead_s = began_s + index / self._events_per_s - time.time()
            if ahead_s > 0:
                producer.poll(0)
                time.sleep(max(0.0, ahead_s))
            number = self._random.randrange(CUSTOMERS)
            producer.produce(
                BALANCE.source_topic,
                key=self.deposits.keys[number],
                value=self.deposits.values[number],
                on_delivery=self._remember(time.time()),
            )
            self.deposits.appended[number] += 1
        assert producer.flush(30) == 0

    def _remember(self, sent_s: float) -> Callable[[object, Message], None]:
        def delivered(error: object, message: Message) -> None:
            assert error is None, error
            self._sent_s[message.partition() or 0, message.offset() or 0] = sent_s

        return delivered

    def _observe(self) -> None:
        consumer = Consumer(
            {
                **self._settings.kafka_connection.client_settings,
                "group.id": "latency-observer",
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
            }
        )
        consumer.assign(
            [
                TopicPartition(CHANGELOG, p, OFFSET_END)
                for p in range(BALANCE.partitions(self._settings.topics))
            ]
        )
        while not self._done.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                self._seen.append((time.time(), message.value() or b""))
        consumer.close()

    def _match(self) -> None:
        for seen_s, value in self._seen:
            record = decode_state_record(value, lambda _id: BALANCE.state_schema)
            sent_s = self._sent_s.get((record.position.partition, record.position.offset))
            if sent_s is not None:
                self.matched.append((sent_s, seen_s))


class Probes:
    """Deposits of new customers, each looked up over HTTP from its acknowledgement until the balance is served."""

    def __init__(self, settings: Settings, per_s: float = PROBES_PER_S, threads: int = PROBE_THREADS) -> None:
        self.latencies_ms: dict[int, list[float]] = defaultdict(list)
        self.deposits = Deposits(settings, customers=20_000, prefix="probe-")
        self._settings = settings
        self._per_s = per_s
        self._threads = threads
        self._lock = threading.Lock()
        self._next = 0

    def run(self, done: threading.Event) -> None:
        """Probe on several threads until `done`, alternating between the nodes."""
        threads = [
            threading.Thread(target=self._probe_all, args=(done, index)) for index in range(self._threads)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _probe_all(self, done: threading.Event, index: int) -> None:
        settings = self._settings
        producer = low_latency_producer(settings.kafka_connection)
        connections = {port: NodeConnection(port) for port in settings.query_ports}
        turn = index
        while not done.wait(self._threads / self._per_s):
            turn += 1
            port = settings.query_ports[turn % len(settings.query_ports)]
            latency_ms = self._probe(producer, connections[port])
            with self._lock:
                self.latencies_ms[port].append(latency_ms)

    def _probe(self, producer: Producer, connection: NodeConnection) -> float:
        with self._lock:
            number, self._next = self._next, self._next + 1
            self.deposits.appended[number] += 1
        acknowledged = threading.Event()
        producer.produce(
            BALANCE.source_topic,
            key=self.deposits.keys[number],
            value=self.deposits.values[number],
            on_delivery=lambda _error, _message: acknowledged.set(),
        )
        while not acknowledged.is_set():
            producer.poll(0.01)
        acknowledged_s = time.monotonic()
        path = f"/api/customers.getBalance?customerId={self.deposits.keys[number].decode()}"
        while time.monotonic() < acknowledged_s + LOOKUP_TIMEOUT_S:
            status, body = connection.get(path)
            if status == HTTPStatus.OK:
                latency_ms = (time.monotonic() - acknowledged_s) * 1000
                assert Decimal(body[len(b'{"amount":') : -1].decode()) == self.deposits.amounts[number], body
                return latency_ms
        raise AssertionError(f"deposit {number} was not served within {LOOKUP_TIMEOUT_S} s: {body!r}")


if __name__ == "__main__":
    main()
