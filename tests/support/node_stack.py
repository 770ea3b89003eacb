"""Two query nodes over a changelog that the tests write themselves, for the tests of the query nodes."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Self

import httpx

from include.nodes.peers import HOP_ANY, HOP_HEADER
from include.settings import CHECKOUT, Settings, settings_environment
from stack.lifecycle import start
from stack.supervision.supervisor import ProcessState, Supervisor
from tests.support.changelog_writer import ChangelogWriter
from tests.support.http.local_http import HTTP, http_client
from tests.support.repetition import repeated
from tests.support.temporary_stack import sharing_servers
from tests.support.waiting import wait_until

DEADLINE_S = 60.0


@dataclass
class NodeStack:
    """Running nodes, what was written to their changelog, and how to query them.

    servers: settings of the stack that supervises Kafka, if it is not the stack of the nodes.
    """

    settings: Settings
    writer: ChangelogWriter
    servers: Settings | None = None
    expected: dict[str, Decimal] = field(default_factory=dict)
    _event_counts: dict[str, int] = field(default_factory=dict)

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports of the nodes."""
        return self.settings.query_ports

    def put(self, customer: str, amount: Decimal) -> None:
        """Append the customer's next state record."""
        count = self._event_counts.get(customer, 0) + 1
        self.writer.write(customer, amount, count, source_offset=count)
        self._event_counts[customer] = count
        self.expected[customer] = amount

    def event_count(self, customer: str) -> int:
        """Return the number of records that were appended for the customer, which is also its newest source offset."""
        return self._event_counts.get(customer, 0)

    def get(self, port: int, path: str) -> httpx.Response:
        """Query a node."""
        return HTTP.get(f"http://127.0.0.1:{port}{path}")

    def balance(self, port: int, customer: str) -> httpx.Response:
        """Query a node for a balance."""
        url = f"http://127.0.0.1:{port}/api/customers.getBalance"
        return HTTP.get(url, params={"customerId": customer})

    def is_exact(self) -> bool:
        """Whether every node returns exactly the written balance of every customer; stops at the first wrong answer."""
        return next(self._wrong_answers(self.ports), None) is None

    def wrong(self, ports: tuple[int, ...] = ()) -> list[str]:
        """Return the answers that differ from the written balances."""
        return list(self._wrong_answers(ports or self.ports))

    def _wrong_answers(self, ports: tuple[int, ...]) -> Iterator[str]:
        for port in ports:
            with http_client(keep_alive=True) as client:
                for customer, amount in list(self.expected.items()):
                    answer = client.get(
                        f"http://127.0.0.1:{port}/api/customers.getBalance",
                        params={"customerId": customer},
                    )
                    if answer.status_code != 200 or answer.text != f'{{"amount":{amount}}}':
                        yield f"{port} {customer}: {answer.status_code} {answer.text}, not {amount}"

    def wait_until_exact(self) -> None:
        """Wait until every node returns the exact balance of every customer."""
        try:
            wait_until(self.is_exact, "all balances are exact on all nodes")
        except AssertionError as error:
            raise AssertionError(f"wrong answers: {self.wrong()[:5]}") from error

    def is_ready(self, port: int) -> bool:
        """Whether a node reports that it is ready."""
        try:
            return self.get(port, "/readyz").status_code == 200
        except httpx.HTTPError:
            return False

    def is_settled(self, *further_ports: int) -> bool:
        """Whether all nodes are ready, agree that each owns partitions, and every owner reports its own partitions.

        A node can be ready while the consumer group still assigns partitions: after a broker restart, a node may have no
        partition, or a partition no owner, for some seconds.

        further_ports: of nodes in addition to those of the stack.
        """
        ports = (*self.ports, *further_ports)
        urls = {f"http://127.0.0.1:{port}" for port in ports}
        try:
            reports = [report for port in ports for report in self.get(port, "/api/partitions").json()]
        except httpx.HTTPError:
            return False
        return (
            all(self.is_ready(port) for port in ports)
            and {report["owner"] for report in reports} == urls
            and all(report["isReady"] and report["reportedBy"] == report["owner"] for report in reports)
        )

    def owned_customer(self, port: int) -> str:
        """Return a customer for whom this node answers as owner; raises KeyError when it owns none of the first customers."""
        node = self.get(port, "/healthz").json()["node"]
        for customer in list(self.expected)[:40]:
            headers = self.balance(port, customer).headers
            if (headers["Foldlake-Node"], headers["Foldlake-Role"]) == (node, "owner"):
                return customer
        raise KeyError(node)

    def settled(self) -> Self:
        """Wait until `is_settled`, and return the nodes."""
        wait_until(self.is_settled, "both are ready and own partitions")
        return self

    def pid(self, process: str) -> int:
        """Return the pid of a supervised process."""
        pid = self._states()[process].pid
        assert pid is not None, f"{process} is not running"
        return pid

    def is_running(self, *processes: str) -> bool:
        """Whether supervised processes run; one that has ended by itself is started again by the supervisor."""
        states = self._states()
        return all(states[process].pid is not None for process in processes)

    def kill(self, *processes: str) -> None:
        """Kill supervised processes simultaneously with -9, and wait until the supervisor has replaced them."""
        killed = {name: self.pid(name) for name in processes}
        for pid in killed.values():
            os.kill(pid, signal.SIGKILL)
        for name, pid in killed.items():
            wait_until(partial(self.is_replaced, name, pid), f"{name} is replaced")

    def is_replaced(self, name: str, pid: int) -> bool:
        """Whether a supervised process runs, and is another one than that with this pid."""
        return self._states()[name].pid not in {None, pid}

    def _states(self) -> dict[str, ProcessState]:
        servers = {} if self.servers is None else Supervisor(self.servers).states()
        return servers | Supervisor(self.settings).states()

    def store(self, node: str, version: int = 1) -> Path:
        """Return the directory of a node's store."""
        return self.settings.home / "nodes" / node / f"balance.v{version}"

    @contextmanager
    def continuous_lookups(self, ports: tuple[int, ...] = ()) -> Iterator[list[str]]:
        """Look up all customers on the nodes continuously; yields the list of wrong and missing answers."""
        failures: list[str] = []

        def look_up() -> None:
            try:
                failures.extend(self.wrong(ports))
            except httpx.HTTPError as error:
                failures.append(repr(error))

        with repeated(look_up):
            yield failures


@contextmanager
def node_stack(
    servers: Settings, keep_home: Callable[[], bool], customers: int, **overrides: object
) -> Iterator[NodeStack]:
    """Run two nodes, which start before there is anything to consume; yields them once they return the customers' balances.

    Args:
        servers: settings of the stack that runs Kafka and the schema registry.
        keep_home: called at the end; returns whether to keep the nodes' home with the logs.
        customers: number of customers, "customer 0/é" and so on, with balances from 5.00.
        overrides: settings by variable, for example `node_store`.
    """
    with sharing_servers(servers, keep_home, **overrides) as home:
        start(home, ("redis", "query_nodes"))
        nodes = NodeStack(home, ChangelogWriter(home), servers=servers)
        nodes.writer.make_topics()
        nodes.writer.register_live()
        for number in range(customers):
            nodes.put(f"customer {number}/é", Decimal(number) / 100 + Decimal("5.00"))
        nodes.writer.flush()
        nodes.wait_until_exact()
        yield nodes


class ExtraNode:
    """A node in addition to those of the stack, without a supervisor: a killed process is not restarted.

    checkout: the directory with the node's code. environment: further variables of its processes. python_path: where they look for
    modules first. overrides: settings of this node only, by variable, for example `node_max_age_s`.
    """

    def __init__(
        self,
        settings: Settings,
        name: str,
        port: int,
        checkout: Path = CHECKOUT,
        environment: Mapping[str, str] = MappingProxyType({}),
        python_path: Path | None = None,
        **overrides: object,
    ) -> None:
        self.name, self.port, self.url = name, port, f"http://127.0.0.1:{port}"
        self._log_path = settings.home / "logs" / f"{name}.log"
        self._checkout = checkout
        self._environment = {
            **os.environ,
            **settings_environment(settings.changed(node_name=name, node_port=port, **overrides)),
            "PYTHONPATH": os.pathsep.join(str(path) for path in (python_path, checkout) if path is not None),
            **environment,
        }
        # How often each process was started.
        self.starts = {"materializer": 0, "server": 0}
        self._starting = threading.Lock()
        self._processes = {part: self._start(part) for part in self.starts}

    def _start(self, part: str) -> "subprocess.Popen[bytes]":
        self.starts[part] += 1
        self._log_path.parent.mkdir(exist_ok=True)
        with self._log_path.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"query_api.{part}"],
                env=self._environment,
                cwd=self._checkout,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def own_answer(self, path: str) -> httpx.Response:
        """Query the node, which must not ask another one."""
        return HTTP.get(f"{self.url}{path}", headers={HOP_HEADER: HOP_ANY})

    def has_ended(self, part: str) -> bool:
        """Whether a process has ended."""
        return self._processes[part].poll() is not None

    def log(self) -> str:
        """Return the output of both processes."""
        return self._log_path.read_text(encoding="utf-8")

    def revive(self) -> None:
        """Start the processes again that have ended, as a supervisor does."""
        with self._starting:
            for part, process in self._processes.items():
                if process.poll() is not None:
                    self._processes[part] = self._start(part)

    def restart(self, part: str, number: signal.Signals) -> None:
        """End a process with a signal, and start it again."""
        with self._starting:
            process = self._processes[part]
            process.send_signal(number)
            process.wait(DEADLINE_S)
            self._processes[part] = self._start(part)

    def send(self, part: str, number: signal.Signals) -> None:
        """Send a signal to a process."""
        self._processes[part].send_signal(number)

    def kill(self) -> None:
        """Kill both processes with -9; the server's workers exit with it."""
        for process in self._processes.values():
            process.kill()
        self._wait()

    def stop(self) -> None:
        """Stop both processes gracefully with SIGTERM."""
        for process in self._processes.values():
            process.terminate()
        try:
            self._wait()
        finally:
            self.kill()

    def _wait(self) -> None:
        for process in self._processes.values():
            process.wait(DEADLINE_S)
