"""Clients of query nodes, in a process of their own: lookups over kept and new connections of each node, and commands."""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection

from include.settings import Settings

COMMAND_INTERVAL_S = 0.05
REQUEST_TIMEOUT_S = 5.0
END_TIMEOUT_S = 60.0
# Of commands: these customers have no other events.
COMMANDED = "command-"


@dataclass
class Answers:
    """The answers to one client. accepted_s: the moments of successful ones, if they are recorded; slowest_s: of one answer."""

    answered: int = 0
    failures: list[str] = field(default_factory=list)
    accepted_s: list[float] = field(default_factory=list)
    slowest_s: float = 0.0


@contextmanager
def clients(settings: Settings, lookups_per_s: int) -> Iterator[dict[str, Answers]]:
    """Run clients in a process of their own during a block; the answers are there after it."""
    found: dict[str, Answers] = {}
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, settings.query_ports, lookups_per_s))
    process.start()
    try:
        yield found
        ours.send("stop")
        found.update(ours.recv())
        process.join(END_TIMEOUT_S)
    finally:
        process.kill()


def _serve(pipe: Connection, ports: tuple[int, ...], lookups_per_s: int) -> None:
    """Run two clients of each node, and one that sends commands to each node in turn, until the pipe says so."""
    is_over = threading.Event()
    found = {"commands": Answers()}
    threads = [threading.Thread(target=_command, args=(ports, found["commands"], is_over))]
    interval_s = 2 * len(ports) / lookups_per_s
    for number, port in enumerate(ports, start=1):
        for kind, is_kept in (("kept connection", True), ("new connections", False)):
            answers = found[f"node {number}, {kind}"] = Answers()
            threads.append(
                threading.Thread(target=_look_up, args=(port, answers, is_over, interval_s, is_kept))
            )
    for thread in threads:
        thread.start()
    pipe.recv()
    is_over.set()
    for thread in threads:
        thread.join()
    pipe.send(found)


def _look_up(port: int, answers: Answers, is_over: threading.Event, interval_s: float, is_kept: bool) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=REQUEST_TIMEOUT_S)
    next_s, number = time.monotonic(), 0
    while not is_over.is_set():
        number += 1
        began_s = time.monotonic()
        path = f"/api/customers.getBalance?customerId=customer-{number % 1000}"
        error = _request(connection, "GET", path, None, http.client.OK)
        if error:
            answers.failures.append(error)
        else:
            answers.answered += 1
        answers.slowest_s = max(answers.slowest_s, time.monotonic() - began_s)
        if error or not is_kept:
            connection.close()
        next_s = max(next_s + interval_s, time.monotonic() - 1.0)
        time.sleep(max(0.0, next_s - time.monotonic()))
    connection.close()


def _command(ports: tuple[int, ...], answers: Answers, is_over: threading.Event) -> None:
    number = 0
    while not is_over.is_set():
        number += 1
        connection = http.client.HTTPConnection(
            "127.0.0.1", ports[number % len(ports)], timeout=REQUEST_TIMEOUT_S
        )
        body = json.dumps({"customerId": f"{COMMANDED}{number % 1000}", "amount": "1.00"})
        began_s = time.monotonic()
        error = _request(connection, "POST", "/api/balance.addFunds", body, http.client.ACCEPTED)
        answers.slowest_s = max(answers.slowest_s, time.monotonic() - began_s)
        connection.close()
        if error:
            answers.failures.append(error)
        else:
            answers.answered += 1
            answers.accepted_s.append(time.monotonic())
        time.sleep(COMMAND_INTERVAL_S)


def _request(
    connection: http.client.HTTPConnection, method: str, path: str, body: str | None, wanted: int
) -> str:
    """Send a request, and return why it has failed; empty if it has the wanted status."""
    headers = {} if body is None else {"Content-Type": "application/json"}
    try:
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        content = response.read()
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}"
    return "" if response.status == wanted else f"{response.status}: {content[:200].decode(errors='replace')}"
