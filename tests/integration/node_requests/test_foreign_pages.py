"""A web page of another host can neither write to a node nor read from it, not even after DNS rebinding."""

import json

import pytest

from tests.support.commands import ADD, JSON, post, slug, written
from tests.support.http.local_http import HTTP
from tests.support.http.raw_http import exchange, request_head
from tests.support.node_stack import NodeStack

BODY = b'{"customerId": "1", "amount": "5.00"}'
LOOKUP = "/api/customers.getBalance?customerId=customer%201/%C3%A9"
PATHS = [LOOKUP, f"{LOOKUP}&minOffset=1", "/api/read-models/balance/records?partition=0", "/", "/healthz"]
FOREIGN_HOSTS = [
    "attacker.example",
    "attacker.example:{port}",
    "127.0.0.1.attacker.example:{port}",
    "attacker.example:{port}@127.0.0.1",
    "0.0.0.0:{port}",
    "",
]


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_dns_rebinding_reads_and_writes_nothing(nodes: NodeStack, host: str) -> None:
    port = nodes.ports[0]
    named = f"Host: {host.format(port=port)}"
    before = written(nodes)

    reads = [exchange(port, request_head("GET", path, named)) for path in PATHS]
    headers = ("Content-Type: application/json", f"Content-Length: {len(BODY)}")
    write = exchange(port, request_head("POST", ADD, named, *headers) + BODY)

    for answer in [*reads, write]:
        assert answer.status == 403
        assert json.loads(answer.body)["type"] == "urn:foldlake:problem:foreign-host"
        assert answer.headers["content-type"] == "application/problem+json"
    assert written(nodes) == before


@pytest.mark.parametrize(
    "host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST", "[::1]:9", "127.0.1.1"]
)
def test_loopback_names_are_answered(nodes: NodeStack, host: str) -> None:
    port = nodes.ports[0]

    answers = [exchange(port, request_head("GET", path, f"Host: {host.format(port=port)}")) for path in PATHS]

    assert {answer.status for answer in answers} == {200}


@pytest.mark.parametrize("origin", ["http://attacker.example", "https://attacker.example:5051", "null"])
def test_a_foreign_page_is_refused(nodes: NodeStack, origin: str) -> None:
    url = f"http://127.0.0.1:{nodes.ports[0]}"
    before = written(nodes)

    answers = [
        HTTP.get(url + LOOKUP, headers={"Origin": origin}),
        HTTP.options(url + ADD, headers={"Origin": origin, "Access-Control-Request-Method": "POST"}),
        post(nodes, ADD, BODY, headers=JSON | {"Origin": origin}),
    ]

    assert {(answer.status_code, slug(answer)) for answer in answers} == {(403, "foreign-origin")}
    assert written(nodes) == before


def test_a_page_of_the_node_itself_is_answered(nodes: NodeStack) -> None:
    origin = f"http://127.0.0.1:{nodes.ports[0]}"

    assert post(nodes, ADD, BODY, headers=JSON | {"Origin": origin}).status_code == 202


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=b"},
        {"Content-Type": "text/plain; application/json"},
    ],
)
def test_a_body_that_a_form_can_send_is_refused(nodes: NodeStack, headers: dict[str, str]) -> None:
    before = written(nodes)

    answer = post(nodes, ADD, BODY, headers=headers)

    assert (answer.status_code, slug(answer)) == (415, "unsupported-media-type")
    assert "Content-Type: application/json" in answer.json()["detail"]
    assert written(nodes) == before


def test_json_with_a_charset_is_accepted(nodes: NodeStack) -> None:
    headers = {"Content-Type": "application/json; charset=utf-8"}

    assert post(nodes, ADD, BODY, headers=headers).status_code == 202
