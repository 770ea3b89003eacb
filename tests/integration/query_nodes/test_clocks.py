"""A wall clock that is set forward or back changes nothing about a node: not whether it is ready, nor how old its answers are."""

import math
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

import pytest

from include.nodes.peers import LAG_HEADER
from tests.support.faults.wall_clock import WallClock, wall_clock
from tests.support.http.local_http import HTTP
from tests.support.node_stack import ExtraNode, NodeStack
from tests.support.repetition import repeated
from tests.support.temporary_stack import free_ports
from tests.support.waiting import wait_until

SESSION_TIMEOUT_S = 6
# Longer than it takes to notice the clock and to start a process.
OBSERVED_S = 15.0


@dataclass(frozen=True)
class ClockedNode:
    """A node whose wall clock the test sets, and a customer whose balance it owns."""

    node: ExtraNode
    clock: WallClock
    customer: str
    log: Path

    @property
    def path(self) -> str:
        """The path of the customer's balance."""
        return f"/api/customers.getBalance?customerId={quote(self.customer, safe='')}"

    def seen_s(self) -> float:
        """Return the Unix time that the node's materializer sees."""
        state = self.log.parent.parent / "nodes" / self.log.stem / "node-state"
        written_at = state.read_text().partition('"written_at":')[2].partition(",")[0]
        return float(written_at)

    def lag_s(self) -> float:
        """Return how old the node's own answer for the customer can be; infinite if it does not answer."""
        answer = self.node.own_answer(self.path)
        return int(answer.headers[LAG_HEADER]) / 1000 if answer.status_code == HTTPStatus.OK else math.inf

    def own_answer(self) -> str:
        """Return the node's own answer for the customer."""
        return self.node.own_answer(self.path).text

    def readiness(self) -> str:
        """Return what the node says about itself."""
        answer = HTTP.get(f"{self.node.url}/readyz")
        return "ready" if answer.json().get("status") == "ready" else answer.text


@pytest.fixture(scope="module")
def clocked_node(
    running_nodes: NodeStack, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ExtraNode, WallClock]]:
    """A third node, which owns partitions, and its clock."""
    nodes = running_nodes.settled()
    clock = wall_clock(tmp_path_factory.mktemp("clock"))
    (port,) = free_ports(1)
    node = ExtraNode(
        nodes.settings, f"clocked-{port}", port, environment=clock.environment, python_path=clock.python_path
    )
    try:
        with repeated(node.revive, pause_s=1.0):
            wait_until(lambda: nodes.is_settled(port), "it owns a partition")
            yield node, clock
    finally:
        node.kill()
    wait_until(nodes.is_settled, "its partitions are owned by others")


@pytest.fixture
def clocked(running_nodes: NodeStack, clocked_node: tuple[ExtraNode, WallClock]) -> Iterator[ClockedNode]:
    """The node, whose clock shows the real time again after the test."""
    node, clock = clocked_node
    nodes, log = running_nodes, running_nodes.settings.home / "logs" / f"{node.name}.log"
    clocked = ClockedNode(node, clock, nodes.owned_customer(node.port), log)
    yield clocked
    set_clock(clocked, "+0", 0)
    wait_until(lambda: nodes.is_settled(node.port) and clocked.lag_s() < 1.0, "the node has settled again")


def set_clock(clocked: ClockedNode, offset: str, seconds: float) -> None:
    """Set the node's clock, and wait until its materializer sees the new time."""
    clocked.clock.set_to(offset)
    wait_until(
        lambda: abs(clocked.seen_s() - time.time() - seconds) < 60, f"the clock shows {offset}", 20, 0.02
    )


@pytest.mark.parametrize("steps", [[("+1h", 3600)], [("+1h", 3600), ("+1d", 86400)]])
def test_node_stays_ready_and_its_answers_young_when_the_clock_is_set_forward(
    clocked: ClockedNode, steps: list[tuple[str, int]]
) -> None:
    readiness: list[str] = []
    lags: list[float] = []

    def observe() -> None:
        readiness.append(clocked.readiness())
        lags.append(clocked.lag_s())

    def has_observed(number: int) -> bool:
        return len(lags) >= number

    with repeated(observe, pause_s=0.02):
        for offset, seconds in steps:
            set_clock(clocked, offset, seconds)
            enough = len(lags) + 50
            wait_until(partial(has_observed, enough), "the node has answered", OBSERVED_S)

    assert {text for text in readiness if text != "ready"} == set()
    assert 0.0 < max(lags) < SESSION_TIMEOUT_S


@pytest.mark.parametrize(("offset", "seconds"), [("-1h", -3600), ("-1d", -86400)])
def test_node_follows_its_changelog_soon_after_the_clock_is_set_back(
    running_nodes: NodeStack, clocked: ClockedNode, offset: str, seconds: int
) -> None:
    nodes, customer = running_nodes, clocked.customer
    set_clock(clocked, offset, seconds)

    nodes.put(customer, nodes.expected[customer] + Decimal("1.00"))
    nodes.writer.flush()
    written_s = time.monotonic()

    after = f'{{"amount":{nodes.expected[customer]}}}'
    wait_until(lambda: clocked.own_answer() == after, "it has applied the record", OBSERVED_S)
    wait_until(lambda: clocked.readiness() == "ready" and clocked.lag_s() < 3.0, "it is ready", OBSERVED_S)
    while time.monotonic() < written_s + OBSERVED_S:
        assert (clocked.readiness(), clocked.lag_s() < SESSION_TIMEOUT_S) == ("ready", True)


@pytest.mark.parametrize("offset", ["+1h", "-1h"])
def test_node_that_stands_still_says_so_whatever_the_clock_is_set_to(
    clocked: ClockedNode, offset: str
) -> None:
    clocked.node.send("materializer", signal.SIGSTOP)
    stopped_s = time.monotonic()
    try:
        clocked.clock.set_to(offset)
        wait_until(lambda: 3.0 < clocked.lag_s() < 60.0, "its answers grow old", 5)
        wait_until(lambda: "has not updated its state for" in clocked.readiness(), "it is not ready", 20)
        assert SESSION_TIMEOUT_S - 1 < time.monotonic() - stopped_s < OBSERVED_S
    finally:
        clocked.node.send("materializer", signal.SIGCONT)
    wait_until(lambda: clocked.readiness() == "ready", "it is ready again")


@pytest.mark.parametrize(("offset", "seconds"), [("+1d", 86400), ("-1d", -86400)])
def test_materializer_that_is_restarted_after_a_jump_continues_from_its_stored_offsets(
    clocked: ClockedNode, offset: str, seconds: int
) -> None:
    set_clock(clocked, offset, seconds)

    clocked.node.restart("materializer", signal.SIGKILL)

    started_s = time.monotonic()
    wait_until(lambda: clocked.readiness() == "ready" and time.monotonic() > started_s + 3.0, "it is ready")
    assert "from the beginning" not in clocked.log.read_text()
    assert clocked.lag_s() < SESSION_TIMEOUT_S
