"""A command that may have been written fails with outcome-unknown; one that fails with 503 was not written."""

import os
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.commands import ADD, post, post_together, slug, written_ids
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until

COMMANDS = 20


@contextmanager
def paused(pid: int) -> Iterator[None]:
    """Stop a process for the block. Its connections stay open, and the kernel accepts bytes for it."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def new_ids() -> list[str]:
    return [str(uuid.uuid4()) for _ in range(COMMANDS)]


def test_a_503_while_the_broker_is_paused_means_that_nothing_was_written(nodes: NodeStack) -> None:
    accepted = post_together(nodes, new_ids())
    assert {answer.status_code for answer in accepted.values()} == {202}, "every worker has a producer"

    with paused(nodes.pid("kafka")):
        started = time.monotonic()
        first = post_together(nodes, new_ids())
        duration_s = time.monotonic() - started
        later = post_together(nodes, new_ids())
        lookups = [nodes.balance(port, "customer 1/é").status_code for port in nodes.ports]
    wait_until(
        lambda: post(nodes, ADD, {"customerId": "1", "amount": "1.00"}).status_code == 202,
        "the broker is back",
    )

    on_log = written_ids(nodes)
    answers = first | later
    repeatable = {event_id for event_id, answer in answers.items() if answer.status_code == 503}
    assert repeatable & on_log == set()
    assert all("Retry-After" in answers[event_id].headers for event_id in repeatable)
    assert accepted.keys() <= on_log
    assert repeatable == later.keys(), "once Kafka has not answered, no further command is handed to it"
    assert {(answer.status_code, slug(answer)) for answer in first.values()} == {(504, "outcome-unknown")}
    assert duration_s < 40, "far less than the minutes that a producer would wait by default"
    assert lookups == [200, 200]


def test_an_unknown_outcome_says_how_to_look_and_not_to_repeat(nodes: NodeStack) -> None:
    accepted = post_together(nodes, new_ids())
    assert {answer.status_code for answer in accepted.values()} == {202}, "every worker has a producer"

    with paused(nodes.pid("kafka")):
        answer = post(nodes, ADD, {"customerId": "7/é", "amount": "1.00", "id": "mine"})

    problem = answer.json()
    assert (answer.status_code, slug(answer)) == (504, "outcome-unknown")
    assert "Retry-After" not in answer.headers
    assert "may have been written" in problem["detail"]
    assert (problem["id"], problem["topic"]) == ("mine", "balance")
    assert problem["record"] == "/api/read-models/balance/records/7%2F%C3%A9"
    assert "eventCount" in problem["advice"]
