"""Every answer but that of a plain lookup has its request's id, and a plain one has it if its client sent one."""

import json
from pathlib import Path

import pytest
from werkzeug.test import Client, TestResponse

from include.observability.request_context import REQUEST_ID_HEADER
from query_api.http.wsgi import FastPath
from tests.unit.query_api.http.access.guarded import Guarded, guarded_node
from tests.unit.query_api.http.parcels import KEY, Node, parcels_settings
from tests.unit.query_api.http.stops import StopsNode, other_node, stops_settings

LOOKUP = "/api/parcels.getPlace"


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(parcels_settings(tmp_path))


def look_up(client: Client, key: str = KEY, **headers: str) -> TestResponse:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.get(LOOKUP, query_string={"parcelId": key}, headers=given)


def test_a_plain_lookup_has_the_id_that_its_client_sent(node: Node) -> None:
    # A + in a key is no plain form, which Werkzeug's client would send.
    plain = node.fast.get(f"{LOOKUP}?parcelId=A%201/2", headers={REQUEST_ID_HEADER: "one"})
    without = node.fast.get(f"{LOOKUP}?parcelId=A%201/2")

    assert (plain.status_code, plain.headers[REQUEST_ID_HEADER]) == (200, "one")
    assert (without.status_code, REQUEST_ID_HEADER in without.headers) == (200, False)


def test_with_an_access_log_a_plain_lookup_has_an_id_too(node: Node) -> None:
    named = FastPath(node.router, node.hosts, node.app.wsgi_app, names_all=True)

    answers = [Client(named).get(f"{LOOKUP}?parcelId=A%201/2") for _ in range(2)]

    first, second = (answer.headers[REQUEST_ID_HEADER] for answer in answers)
    assert first != second


@pytest.mark.parametrize("path", [f"{LOOKUP}?parcelId=nobody", f"{LOOKUP}?parcelId=", "/api/nothing"])
@pytest.mark.parametrize("given", ["one", "", 'two"'])
def test_a_problem_names_its_request(node: Node, path: str, given: str) -> None:
    refused = node.fast.get(path, headers={REQUEST_ID_HEADER: given})

    known = refused.headers.get_all(REQUEST_ID_HEADER)
    assert known == [json.loads(refused.data)["requestId"]]
    assert (known == ["one"]) == (given == "one")


def test_an_answer_of_flask_has_an_id(node: Node) -> None:
    for path in ("/healthz", "/api/read-models", "/docs"):
        assert len(node.fast.get(path).headers[REQUEST_ID_HEADER]) == 32


def test_a_refused_request_is_in_the_audit_log_under_its_id(tmp_path: Path) -> None:
    guarded: Guarded = guarded_node(tmp_path)

    refused = look_up(guarded.client, **{REQUEST_ID_HEADER: "one"})

    assert refused.headers[REQUEST_ID_HEADER] == json.loads(refused.data)["requestId"] == "one"
    assert [entry["request"] for entry in guarded.audited()] == ["one"]


def test_another_node_gets_the_id_and_it_comes_back(tmp_path: Path) -> None:
    targets: list[str] = []

    def answer(target: str) -> tuple[int, dict[str, str], str]:
        targets.append(target)
        return 200, {"Content-Type": "application/json", REQUEST_ID_HEADER: "of the other node"}, "{}"

    with other_node(answer) as url:
        node = StopsNode(stops_settings(tmp_path), url)
        node.publish()
        found = [node.client.get(f"/api/stops.get?stopId={key}") for key in "abcdef"]

    assert targets
    proxied = [one for one in found if one.text == "{}"]
    assert len(proxied) == len(targets)
    assert all(len(one.headers[REQUEST_ID_HEADER]) == 32 for one in proxied)
