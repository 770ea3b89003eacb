"""Latency from a log line to an answer: a probe appends a line of its browser, and asks a node until it has counted it."""

import json
import threading
import time
from datetime import UTC, datetime

import httpx

from benchmarks.latency import wait_for_real_time
from benchmarks.support.report import latency_line, print_environment
from demo.appending import event_producer
from demo.logs.catalogue import append_entries, first_entries
from demo.logs.lines import LogLine, log_lines
from demo.logs.loading import TOPIC
from include.settings import KafkaConnection
from stack.lifecycle import start
from tests.support.temporary_stack import temporary_stack
from tests.support.unsupervised_driver import stream_driver
from tests.support.waiting import wait_until

BROWSER, THREAD = "probe", "probe"
PATH = "/api/browsers.getActions"
PROBE_EVERY_S = 0.25
TIMEOUT_S = 30.0
START_S = 300.0
MAX_LINES = 10_000_000


class Load:
    """Appends lines at a constant rate in a thread. line: the newest one."""

    def __init__(self, kafka: KafkaConnection, lines_per_s: int) -> None:
        self._lines = log_lines(MAX_LINES)
        self.line: LogLine = next(self._lines)
        self._producer = event_producer(kafka)
        self._interval_s = 1 / lines_per_s
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        next_s = time.monotonic()
        while not self._is_stopping.is_set():
            self.line = next(self._lines)
            self._producer.produce(
                TOPIC, self.line.text.encode(), self.line.thread, timestamp=self.line.written_ms
            )
            self._producer.poll(0)
            next_s += self._interval_s
            self._is_stopping.wait(max(0.0, next_s - time.monotonic()))

    def stop(self) -> None:
        """Stop, and wait until all lines are acknowledged."""
        self._is_stopping.set()
        self._thread.join()
        assert self._producer.flush(TIMEOUT_S) == 0


class Probe:
    """Appends lines of one browser, each at the time of the load, and asks a node for its count."""

    def __init__(self, kafka: KafkaConnection, node: str, load: Load) -> None:
        self._producer = event_producer(kafka)
        self._client = httpx.Client(base_url=node, trust_env=False)
        self._load = load
        self._count = 0

    def counted(self) -> int:
        """Return the number of the browser's actions that the node answers; -1 if it cannot answer."""
        try:
            answer = self._client.get(PATH, params={"browserHash": BROWSER})
        except httpx.HTTPError:
            return -1
        return int(answer.json().get("actions", -1)) if answer.is_success else -1

    def append(self) -> int:
        """Append a line, and return how many there are then."""
        written_ms = self._load.line.written_ms
        at = datetime.fromtimestamp(written_ms / 1000, UTC).isoformat(timespec="milliseconds")
        record = {"@timestamp": at, "logger_name": "browser-actions", "thread_name": THREAD}
        line = json.dumps(record | {"browser_hash": BROWSER, "action": "home"})
        self._producer.produce(TOPIC, line.encode(), THREAD, timestamp=written_ms)
        assert self._producer.flush(TIMEOUT_S) == 0
        self._count += 1
        return self._count

    def latency_s(self) -> float:
        """Return the time from before a line is appended until an answer has counted it."""
        began_s = time.perf_counter()
        expected = self.append()
        while (found := self.counted()) < expected:
            assert time.perf_counter() - began_s < TIMEOUT_S, (
                f"no answer has counted line {expected}: {found}"
            )
        assert found == expected
        return time.perf_counter() - began_s


def run(lines_per_s: int, warm_up_s: int, seconds: int) -> None:
    """Measure with two nodes at a constant rate of lines, after a warm-up with the same load."""
    with temporary_stack(("kafka", "registry"), systems=("logs",)) as settings:
        print_environment(settings)
        append_entries(settings, first_entries())
        start(settings, ("query_nodes",))
        with stream_driver(settings):
            wait_for_real_time(settings)
            kafka, node = settings.kafka_connection, f"http://127.0.0.1:{settings.query_ports[0]}"
            load = Load(kafka, lines_per_s)
            probe = Probe(kafka, node, load)
            first = probe.append()
            wait_until(lambda: probe.counted() == first, "the first line is counted", START_S)
            time.sleep(warm_up_s)
            latencies, until_s = [], time.monotonic() + seconds
            while time.monotonic() < until_s:
                latencies.append(probe.latency_s())
                time.sleep(PROBE_EVERY_S)
            load.stop()
    name = f"line -> answer at {lines_per_s:,} lines/s"
    print(latency_line(name, [1000 * one for one in latencies]), flush=True)
