"""A read model in a real Redis: every node answers from it, one writes each partition, and it comes back exactly after any loss."""

import os
import signal
from collections.abc import Callable, Iterator
from decimal import Decimal

import pytest
from valkey import Valkey

from include.settings import Placement, Settings
from tests.integration.placements.two_nodes import TwoNodes, check_replicas, check_same_answers, two_nodes
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def placed(servers: Settings, keep_home: Callable[[], bool]) -> Iterator[TwoNodes]:
    """Two nodes, and the embedded Redis."""
    with two_nodes(servers, keep_home, Placement.REDIS) as nodes:
        yield nodes


@pytest.fixture
def redis(placed: TwoNodes) -> Valkey:
    """A client of the server."""
    return Valkey(port=placed.nodes.settings.redis.port)


def deposit(placed: TwoNodes, customers: list[str]) -> None:
    """Write a further record for each of these customers."""
    for customer in customers:
        placed.nodes.put(customer, placed.nodes.expected[customer] + Decimal("0.01"))
    placed.nodes.writer.flush()


def test_every_node_gives_the_same_answers(placed: TwoNodes) -> None:
    check_same_answers(placed)


def test_quality_check_reads_every_copy_once(placed: TwoNodes) -> None:
    placed.wait_until_exact()
    check_replicas(placed)


def test_other_node_answers_on_and_becomes_the_writer_when_the_owner_is_killed(placed: TwoNodes) -> None:
    lost = placed.owned_by_other()
    assert lost, "the other node owns keys"
    placed.other.kill()

    assert placed.nodes.wrong((placed.first_port,)) == [], "it answers from Redis at once"
    deposit(placed, lost)
    wait_until(lambda: placed.nodes.wrong((placed.first_port,)) == [], "the first node has written them")

    placed.start_other()
    deposit(placed, lost)
    placed.wait_until_exact()


def test_paused_writer_that_has_lost_its_partitions_overwrites_nothing(placed: TwoNodes) -> None:
    lost = placed.owned_by_other()
    assert lost, "the other node owns keys"
    placed.other.send("materializer", signal.SIGSTOP)
    try:
        for _ in range(2):
            deposit(placed, lost)
            wait_until(lambda: placed.nodes.wrong((placed.first_port,)) == [], "the first node writes")
    finally:
        placed.other.send("materializer", signal.SIGCONT)

    placed.wait_until_settled()
    deposit(placed, lost)
    placed.wait_until_exact()


def test_lookups_are_refused_while_redis_is_down_and_exact_after_it_is_back(placed: TwoNodes) -> None:
    customers = sorted(placed.nodes.expected)
    supervised = placed.nodes.pid("redis")
    os.kill(supervised, signal.SIGSTOP)  # it is there, and answers nothing
    try:
        wait_until(lambda: not placed.nodes.is_ready(placed.first_port), "the node is not ready")
        answer = placed.nodes.balance(placed.first_port, customers[0])
        assert answer.status_code == 503
        assert answer.headers["Retry-After"] == "1"
        assert "Redis at 127.0.0.1:" in answer.json()["detail"]
        reasons = placed.nodes.get(placed.first_port, "/readyz").json()["reasons"]
        assert any("does not answer" in reason for reason in reasons), reasons
        deposit(placed, customers)
    finally:
        os.kill(supervised, signal.SIGKILL)

    placed.wait_until_exact()
    placed.wait_until_settled()
    assert placed.nodes.pid("redis") != supervised


def test_emptied_redis_is_filled_again_and_knows_every_key_meanwhile(placed: TwoNodes, redis: Valkey) -> None:
    customers = sorted(placed.nodes.expected)

    redis.flushall()
    statuses = {
        (port, placed.nodes.balance(port, customer).status_code)
        for _ in range(10)
        for port in placed.both
        for customer in customers[:10]
    }

    assert {status for _, status in statuses} <= {200, 503}, "no key is unknown"
    placed.wait_until_exact()
    deposit(placed, customers)
    placed.wait_until_exact()
