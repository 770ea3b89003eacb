"""A read model's package defines lookups and commands: the fast path, Flask and the status page offer them."""

import json
from pathlib import Path

import pytest

from include.nodes.peers import LAG_HEADER
from include.observability.request_context import REQUEST_ID_HEADER
from include.settings import Settings
from query_api.metrics.node_metrics import LOOKUP_SECONDS
from tests.unit.query_api.http.parcels import ANSWER, Node, parcels_settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return parcels_settings(tmp_path)


@pytest.fixture
def node(settings: Settings) -> Node:
    return Node(settings)


def test_a_bound_on_the_events_topic_is_refused_if_the_events_are_re_keyed(settings: Settings) -> None:
    node = Node(settings, {"parcels": "scans"})
    path = "/api/parcels.getPlace?parcelId=A+1/2"

    for client in (node.fast, node.flask):
        assert client.get(path).status_code == 200
        refused = client.get(f"{path}&minOffset=42")
        assert refused.status_code == 400
        assert "urn:foldlake:problem:bound-of-another-topic" in refused.text


def observed() -> float:
    samples = [sample for metric in LOOKUP_SECONDS.collect() for sample in metric.samples]
    return sum(sample.value for sample in samples if sample.name.endswith("_count"))


def test_fast_path_answers_the_lookup_in_the_plain_form(node: Node) -> None:
    before = observed()

    answer = node.fast.get("/api/parcels.getPlace?parcelId=A%201/2")

    assert (answer.status_code, answer.text) == (200, ANSWER)
    assert observed() == before + 1


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("parcelId=A%201/2", 200),
        ("parcelId=A+1/2&minOffset=42", 200),
        ("parcelId=nobody", 404),
        ("parcelId=", 400),
        ("parcelId=" + "x" * 21, 400),
        ("parcelId=a&parcelId=b", 400),
        ("parcelid=a", 400),
        ("parcelId=%ff", 400),
        ("parcelId=a&minOffset=x", 400),
    ],
)
def test_fast_path_and_flask_give_the_same_answer(node: Node, query: str, status: int) -> None:
    fast, flask = (
        client.get(f"/api/parcels.getPlace?{query}", headers={REQUEST_ID_HEADER: "one"})
        for client in (node.fast, node.flask)
    )

    assert fast.status_code == flask.status_code == status
    assert fast.text == flask.text
    # The fast path adds the id to the answers of both.
    assert fast.headers[REQUEST_ID_HEADER] == "one"
    varying = {"Content-Length": "", LAG_HEADER: "", REQUEST_ID_HEADER: ""}
    assert {**fast.headers, **varying} == {**flask.headers, **varying}
    assert (LAG_HEADER in fast.headers) == (LAG_HEADER in flask.headers) == (status in {200, 404})


@pytest.mark.parametrize(
    ("environ", "status", "slug"),
    [
        ({"HTTP_HOST": "attacker.example"}, 403, "foreign-host"),
        ({"HTTP_HOST": ""}, 403, "foreign-host"),
        ({"HTTP_ORIGIN": "http://attacker.example"}, 403, "foreign-origin"),
        ({"CONTENT_LENGTH": "5", "HTTP_TRANSFER_ENCODING": "chunked"}, 400, "ambiguous-length"),
    ],
)
def test_fast_path_leaves_the_refusal_of_foreign_requests_to_flask(
    node: Node, environ: dict[str, str], status: int, slug: str
) -> None:
    for client in (node.fast, node.flask):
        answer = client.get("/api/parcels.getPlace?parcelId=A%201/2", environ_overrides=environ)

        assert (answer.status_code, json.loads(answer.text)["type"]) == (
            status,
            f"urn:foldlake:problem:{slug}",
        )


def test_fast_path_answers_a_page_of_the_node_itself(node: Node) -> None:
    headers = {"Host": "127.0.0.1:5051", "Origin": "http://127.0.0.1:5051"}

    answer = node.fast.get("/api/parcels.getPlace?parcelId=A%201/2", headers=headers)

    assert (answer.status_code, answer.text) == (200, ANSWER)


def test_problem_is_named_after_the_parameter(node: Node) -> None:
    missing = node.fast.get("/api/parcels.getPlace")
    too_long = node.fast.get("/api/parcels.getPlace?parcelId=" + "x" * 21)
    unknown = node.fast.get("/api/parcels.getPlace?other=1")

    assert json.loads(missing.text)["type"] == "urn:foldlake:problem:missing-parcel-id"
    assert json.loads(too_long.text)["type"] == "urn:foldlake:problem:parcel-id-too-long"
    assert json.loads(unknown.text)["detail"] == "Unknown: other; allowed: decimals, minOffset, parcelId."


def test_other_methods_are_handled_by_flask(node: Node) -> None:
    head = node.fast.head("/api/parcels.getPlace?parcelId=A%201/2")
    post = node.fast.post("/api/parcels.getPlace?parcelId=A%201/2")

    assert (head.status_code, head.text, head.headers["Foldlake-Role"]) == (200, "", "owner")
    assert (post.status_code, post.headers["Allow"]) == (405, "GET, HEAD, OPTIONS")


def test_whole_record_is_served_too(node: Node) -> None:
    record = node.fast.get("/api/read-models/parcels/records/A%201%2F2")

    assert json.loads(record.text)["state"] == {
        "place": 'a "depot"',
        "fee": -1.25,
        "seen": "2026-01-02T03:04:05+00:00",
    }


def test_command_is_validated_by_its_fields(node: Node) -> None:
    answer = node.fast.post("/api/parcels.weigh", json={"parcelId": "A", "grams": 101, "more": 1})

    assert answer.status_code == 400
    assert {e["field"]: e["error"] for e in json.loads(answer.text)["errors"]} == {
        "grams": "must be from 1 to 100",
        "more": "is unknown; allowed: grams, id, parcelId",
    }


def test_status_page_lists_every_read_model_with_examples(node: Node) -> None:
    page = node.fast.get("/").text

    assert 'href="/api/parcels.getPlace?parcelId=A%201/2"' in page
    assert 'href="/api/read-models/parcels/records?key=A%201/2"' in page
    assert "/api/parcels.weigh" in page
    assert "{&#34;parcelId&#34;: &#34;A&#34;, &#34;grams&#34;: 5}" in page
    assert 'href="/api/customers.getBalance?customerId=1"' in page
    assert "/api/balance.withdrawFunds" in page
    for path in ("/api/read-models/parcels/records?key=A%201/2", "/api/parcels.getPlace?parcelId=A%201/2"):
        assert node.fast.get(path).status_code == 200
