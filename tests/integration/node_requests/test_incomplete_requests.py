"""Nothing is written unless a command's body is complete, whatever bytes a client sends."""

import re

import pytest

from tests.support.commands import ADD, post, written
from tests.support.http.raw_http import RawResponse, exchange, request_head, send_and_close
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until

BODY = b'{"customerId": "1", "amount": "5.00"}'
CHUNK = b"%x\r\n%s\r\n" % (len(BODY), BODY)
LAST_CHUNK = b"0\r\n\r\n"
LENGTH = f"Content-Length: {len(BODY)}"
CHUNKED = "Transfer-Encoding: chunked"


def head(nodes: NodeStack, *headers: str) -> bytes:
    host = f"Host: 127.0.0.1:{nodes.ports[0]}"
    return request_head("POST", ADD, host, "Content-Type: application/json", *headers)


def handled(nodes: NodeStack) -> float:
    """Return the number of commands that the first node has handled."""
    metrics = nodes.get(nodes.ports[0], "/metrics").text
    return sum(
        float(value) for value in re.findall(r"^foldlake_commands_total\{.*\} (\S+)$", metrics, re.MULTILINE)
    )


def answered(nodes: NodeStack, request: bytes) -> tuple[int, str]:
    answer: RawResponse = exchange(nodes.ports[0], request)
    matched = re.search(rb'"type":"urn:foldlake:problem:([a-z-]+)"', answer.body)
    return answer.status, matched[1].decode() if matched else ""


@pytest.mark.parametrize(
    ("header", "body"),
    [("Content-Length: 5000", BODY), (LENGTH, BODY[:-1]), (CHUNKED, CHUNK)],
    ids=["longer length", "missing byte", "missing last chunk"],
)
def test_a_body_that_the_client_does_not_finish_writes_nothing(
    nodes: NodeStack, header: str, body: bytes
) -> None:
    assert post(nodes, ADD, BODY).status_code == 202
    before, handled_before = written(nodes), handled(nodes)

    send_and_close(nodes.ports[0], head(nodes, header) + body)

    wait_until(lambda: handled(nodes) == handled_before + 1, "the command is handled")
    assert written(nodes) == before


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        ((LENGTH, CHUNKED), CHUNK + LAST_CHUNK, 400),
        ((CHUNKED, LENGTH), CHUNK + LAST_CHUNK, 400),
        ((LENGTH, CHUNKED), BODY, 400),
        ((CHUNKED,), CHUNK + LAST_CHUNK, 400),
        ((LENGTH, "Content-Length: 1"), BODY, 400),
        ((), b"", 411),
    ],
    ids=["length first", "chunked first", "not chunked", "chunked", "two lengths", "neither"],
)
def test_a_body_whose_end_is_ambiguous_or_unknown_is_refused(
    nodes: NodeStack, headers: tuple[str, ...], body: bytes, expected: int
) -> None:
    before = written(nodes)

    status, _ = answered(nodes, head(nodes, *headers) + body)

    assert status == expected
    assert written(nodes) == before


def test_a_connection_with_an_ambiguous_request_is_closed(nodes: NodeStack) -> None:
    answer = exchange(nodes.ports[0], head(nodes, LENGTH, CHUNKED) + CHUNK + LAST_CHUNK)

    assert (answer.status, answer.headers.get("connection")) == (400, "close")


def test_a_complete_body_in_several_packets_is_accepted(nodes: NodeStack) -> None:
    status, _ = answered(nodes, head(nodes, LENGTH) + BODY)

    assert status == 202
