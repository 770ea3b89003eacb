"""Events and lookups that go on while a test changes the stack."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from http import HTTPStatus
from itertools import cycle, pairwise
from urllib.parse import urlencode

import httpx
from confluent_kafka import Message

from include.read_models.balance.events import FundsAdded
from include.settings import Settings
from include.stream.driver_launch import LaunchReport, read_report
from tests.support.commands import ADD, JSON
from tests.support.http.local_http import http_client
from tests.support.stream_events import CHANGELOG, Ledger
from tests.support.stream_process import EventSource, records_of
from tests.support.waiting import wait_until

EVENTS_PER_S = 200
LOOKUP_INTERVAL_S = 0.02
LOOKUP_TIMEOUT_S = 2.0
# A client of one node sends a command after this number of lookups.
LOOKUPS_PER_COMMAND = 10
TIMEOUT_S = 300.0


def assert_same_launch(settings: Settings, before: LaunchReport | None) -> None:
    """Assert that Airflow's task follows the same launch as before: the driver was replaced, not launched again."""
    now = read_report(settings.home)
    assert before is not None
    assert now is not None
    expected = (before.launch_id, before.relaunches, False)
    assert (now.launch_id, now.relaunches, now.has_ended) == expected


class Traffic:
    """Appends events, and looks a balance up on each node again and again.

    Each node also has two clients of its own, which look up and send commands: one keeps its connection, the other has one for each request.

    ledger: all events so far. without_answer: the moments at which no node has answered. failed: requests of clients of one node.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.ledger = Ledger()
        self.without_answer: list[float] = []
        self.failed: list[str] = []
        self.lookups = 0
        self._source = EventSource(settings, "balance")
        self._is_over = threading.Event()

    def settle(self) -> None:
        """Send a few events, and wait until both nodes answer with everything."""
        self._source.append(self.ledger.random_events(200))
        wait_until(lambda: self.ledger.is_answered(self.settings), "every balance is right", TIMEOUT_S, 0.5)
        self.ledger.assert_exact(self.settings)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Send events and lookups during a block."""
        clients: list[Callable[[], None]] = [
            partial(self._use_node, port, keep=keep)
            for port in self.settings.query_ports
            for keep in (True, False)
        ]
        threads = [threading.Thread(target=one) for one in [self._append, self._look_up, *clients]]
        self._is_over.clear()
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            for thread in threads:
                thread.join()

    def longest_pause_s(self, since_s: float) -> float:
        """Return the longest time since this moment in which no record of the changelog was written."""
        written = sorted(self._written_s(message) for message in records_of(self.settings, CHANGELOG))
        moments = [since_s, *(at_s for at_s in written if at_s > since_s)]
        return max(later - earlier for earlier, later in pairwise(moments))

    @staticmethod
    def _written_s(message: Message) -> float:
        return float(message.timestamp()[1]) / 1000

    def _append(self) -> None:
        next_s = time.monotonic()
        while not self._is_over.is_set():
            self._source.append(self.ledger.random_events(EVENTS_PER_S // 20))
            next_s += 0.05
            time.sleep(max(0.0, next_s - time.monotonic()))

    def _look_up(self) -> None:
        customers = cycle(self.ledger.amounts.copy())
        urls = [f"http://127.0.0.1:{port}/api/customers.getBalance" for port in self.settings.query_ports]
        with http_client(timeout_s=LOOKUP_TIMEOUT_S) as client:
            while not self._is_over.is_set():
                # One after the other: either node may be the one that is being replaced.
                customer = next(customers)
                if not any(self._is_answered(client, url, customer) for url in urls):
                    self.without_answer.append(time.time())
                self.lookups += 1
                time.sleep(LOOKUP_INTERVAL_S)

    @staticmethod
    def _is_answered(client: httpx.Client, url: str, customer: str) -> bool:
        try:
            return client.get(url, params={"customerId": customer}).is_success
        except httpx.HTTPError:
            return False

    def _use_node(self, port: int, *, keep: bool) -> None:
        """Look up and send commands on one node, whose clients do not repeat a request that fails."""
        customers = cycle(self.ledger.amounts.copy())
        own = FundsAdded(customerId=f"client of {port}, kept {keep}", amount=Decimal("1.00"))
        body = json.dumps({"customerId": own.customerId, "amount": "1.00"})
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LOOKUP_TIMEOUT_S)
        number = 0
        while not self._is_over.is_set():
            number += 1
            is_command = number % LOOKUPS_PER_COMMAND == 0
            query = urlencode({"customerId": next(customers)})
            try:
                if is_command:
                    connection.request("POST", ADD, body, JSON)
                else:
                    connection.request("GET", f"/api/customers.getBalance?{query}")
                response = connection.getresponse()
                text = response.read().decode()
                if response.status >= HTTPStatus.BAD_REQUEST:
                    self.failed.append(f"{port} {keep=} {is_command=}: {response.status} {text}")
                elif is_command:
                    self.ledger.add(own)
            except (OSError, http.client.HTTPException) as error:
                self.failed.append(f"{port} {keep=} {is_command=}: {error!r}")
                connection.close()
            if not keep:
                connection.close()
            time.sleep(LOOKUP_INTERVAL_S)
        connection.close()
