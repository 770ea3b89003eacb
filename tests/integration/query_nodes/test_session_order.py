"""At one node, a key's answers never go backwards, also while materializers and HTTP servers are killed and the broker is away.

Seen before: 68 steps back in 270 s with 27 kills. A node that took a partition over answered before it had caught up.
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial

import httpx
import pytest

from include.position import Position
from tests.support.node_stack import NodeStack
from tests.support.repetition import repeated
from tests.support.waiting import wait_until

CUSTOMERS = [f"session {number}" for number in range(12)]
WRITE_INTERVAL_S = 0.02
ASK_AGAIN_S = 0.05
KILLS_WITH_A_PAUSED_BROKER = 0.5


@dataclass
class SessionChecker:
    """Asks one node for each customer in turn, as a client does; records each answer that is older than one before."""

    nodes: NodeStack
    port: int
    steps_back: list[str] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    _newest: dict[str, tuple[int, str]] = field(default_factory=dict)

    def ask(self) -> None:
        """Ask for each customer once."""
        for customer in CUSTOMERS:
            try:
                answer = self.nodes.balance(self.port, customer)
            except httpx.HTTPError:
                time.sleep(ASK_AGAIN_S)  # its server is being replaced
                continue
            self.statuses[answer.status_code] += 1
            newest, by = self._newest.get(customer, (-1, ""))
            if answer.status_code == 200:
                headers = answer.headers
                offset = Position.parse(headers["Foldlake-Position"]).offset
                here = f"{headers['Foldlake-Role']} {headers['Foldlake-Node']}"
                if offset < newest:
                    self.steps_back.append(
                        f"{self.port} {customer}: {offset} by {here} after {newest} by {by}"
                    )
                else:
                    self._newest[customer] = offset, here
            elif answer.status_code == 404 and newest >= 0:
                self.steps_back.append(f"{self.port} {customer}: unknown after {newest} by {by}")


@contextmanager
def sessions(nodes: NodeStack) -> Iterator[list[SessionChecker]]:
    """Write records and check sessions at every node during the block."""

    def write() -> None:
        for customer in CUSTOMERS:
            nodes.put(customer, Decimal(f"{nodes.event_count(customer) + 1}.00"))
        nodes.writer.flush()
        time.sleep(WRITE_INTERVAL_S)

    write()
    nodes.wait_until_exact()
    checkers = [SessionChecker(nodes, port) for port in nodes.ports]
    with ExitStack() as running:
        running.enter_context(repeated(write))
        for checker in checkers:
            running.enter_context(repeated(checker.ask))
        yield checkers


@contextmanager
def paused_broker(nodes: NodeStack) -> Iterator[None]:
    pid = nodes.pid("kafka")
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def kill_often(nodes: NodeStack, kills: int) -> None:
    """Kill processes of the nodes, half of the time while the broker is paused, longer than a session."""
    generator = random.Random(20261122)
    for _ in range(kills):
        node = generator.choice(("node-1", "node-2"))
        processes = generator.choice(
            ((f"{node}-materializer",), (f"{node}-http",), (f"{node}-materializer", f"{node}-http"))
        )
        time.sleep(generator.uniform(0.5, 2.0))
        with ExitStack() as broker:
            if generator.random() < KILLS_WITH_A_PAUSED_BROKER:
                broker.enter_context(paused_broker(nodes))
            # A materializer that could not send heartbeats for longer than its session ends, and is started again.
            wait_until(partial(nodes.is_running, *processes), "the supervisor has started them again")
            nodes.kill(*processes)
            time.sleep(generator.uniform(0.0, 8.0))


def check(nodes: NodeStack, kills: int) -> None:
    with sessions(nodes) as checkers:
        kill_often(nodes, kills)
        nodes.settled()

    assert [step for checker in checkers for step in checker.steps_back] == []
    for checker in checkers:
        assert checker.statuses[200] > checker.statuses[503], checker.statuses
    nodes.wait_until_exact()


def test_answers_of_a_node_never_go_backwards_while_processes_are_killed(nodes: NodeStack) -> None:
    check(nodes, kills=2)


@pytest.mark.endurance
@pytest.mark.timeout(3600)
def test_answers_of_a_node_never_go_backwards_over_100_kills(nodes: NodeStack) -> None:
    check(nodes, kills=100)
