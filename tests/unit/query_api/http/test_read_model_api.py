"""A read model's package defines lookups and commands: the fast path, Flask and the index page offer them."""

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from types import MappingProxyType

import fastavro
import pytest
from flask.testing import FlaskClient
from werkzeug.test import Client

from include.declarations.api import load_apis
from include.kafka.wire_format import header
from include.nodes.peers import LAG_HEADER, Peers
from include.settings import Settings
from query_api.changes.change_feeds import ChangeFeeds
from query_api.cluster import node_state
from query_api.cluster.node_state import ModelState, NodeState, PartitionState, VersionState
from query_api.http.allowed_hosts import AllowedHosts
from query_api.http.app import create_app
from query_api.http.lookups.fast_path import FastPath
from query_api.http.lookups.joined_lookup import compile_lookups
from query_api.http.lookups.router import LookupRouter
from query_api.lookup.local_lookup import LocalLookup
from query_api.lookup.lookups import Lookups
from query_api.metrics.node_metrics import LOOKUP_SECONDS
from query_api.store.base import Binding, Change, ChangelogPosition
from query_api.store.directory import StoreDirectory
from query_api.store.lmdb.backend import LmdbBackend

SCHEMA_ID = 7
MODEL = """
from include.declarations.read_model import TIMESTAMP_MILLIS, ReadModel, StateField, decimal_type
READ_MODEL = ReadModel(
    name="parcels", source_topic="parcels", event_types=("Scanned",), key=lambda: None, folds={1: dict},
    state=(
        StateField("place", "string"), StateField("fee", decimal_type(9, 3)), StateField("seen", TIMESTAMP_MILLIS),
        StateField("later", "long", since=2),
    ),
)
"""
API = """
from include.declarations.api import Command, NamedLookup
from include.declarations.command_fields import IntegerField, TextField
LOOKUPS = (NamedLookup("/api/parcels.getPlace", "parcelId", ("place", "fee", "seen", "event_count", "later"), 20, "A 1/2"),)
COMMANDS = (
    Command("/api/parcels.weigh", "Weighed", (TextField("parcelId"), IntegerField("grams", 1, 100)), {"parcelId": "A", "grams": 5}),
)
"""
SEEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RECORD = {
    "place": 'a "depot"',
    "fee": Decimal("-1.250"),
    "seen": SEEN,
    "event_count": 3,
    "source_partition": 0,
    "source_offset": 42,
    "occurred_on": SEEN,
}
ANSWER = (
    '{"place":"a \\"depot\\"","fee":-1.250,"seen":"2026-01-02T03:04:05+00:00","event_count":3,"later":null}'
)
KEY = "A 1/2"


def event_schema(name: str, *fields: dict[str, str]) -> str:
    time_type = {"type": "long", "logicalType": "timestamp-millis"}
    own = [{"name": "id", "type": "string"}, {"name": "occurredOn", "type": time_type}]
    record = {"type": "record", "name": name, "namespace": "t", "foldlake.key": "parcelId"}
    return json.dumps(record | {"fields": [*own, {"name": "parcelId", "type": "string"}, *fields]})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    package = tmp_path / "models" / "parcels"
    (package / "schemas").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "model.py").write_text(MODEL)
    (package / "anything.py").write_text(API)
    (package / "schemas" / "Scanned.avsc").write_text(event_schema("Scanned"))
    (package / "schemas" / "Weighed.avsc").write_text(
        event_schema("Weighed", {"name": "grams", "type": "int"})
    )
    return Settings.of(
        home=tmp_path / "home", read_models_dir=tmp_path / "models", kafka_bootstrap="127.0.0.1:1"
    )


class Node:
    """A query node's application over a real store with one record; `flask` is the application behind the fast path."""

    def __init__(self, settings: Settings, rekeyed: Mapping[str, str] = MappingProxyType({})) -> None:
        apis = load_apis(settings.declaration_folders)
        model = next(api.model for api in apis if api.model.name == "parcels")
        schema = model.state_schema_of(1)
        value = BytesIO()
        value.write(header(SCHEMA_ID))
        fastavro.schemaless_writer(value, fastavro.parse_schema(schema.parsed()), RECORD)
        changelog = Binding("cluster", "parcels.v1.changelog", "topic id")
        store = StoreDirectory(settings.store_dir, LmdbBackend(64 * 1024 * 1024)).open_writer(
            "parcels", 1, 1, changelog
        )
        change = Change(KEY.encode(), 3, 0, value.getvalue())
        store.commit({0: [change]}, {0: ChangelogPosition(1, time.time())}, {SCHEMA_ID: schema.text})
        store.close()
        held = {1: VersionState(1, "live", "parcels.v1.changelog", {0: PartitionState(is_ready=True)})}
        url = settings.node.advertised_url
        state = ModelState("parcels", "parcels", 1, 1, 1, held, frozenset({0}), owners={0: url})
        node = NodeState(settings.node.name, url, models={"parcels": state})
        node_state.write(settings.store_dir, replace(node, written_at=time.time()))
        lookups = Lookups(LocalLookup(settings), Peers())
        router = LookupRouter(lookups, compile_lookups(apis, lookups), dict(rekeyed))
        hosts = AllowedHosts(settings.node)
        app = create_app(settings, hosts, lookups, router, apis, ChangeFeeds(settings, lookups.local.state))
        self.flask: FlaskClient = app.test_client()
        self.fast = Client(FastPath(router, hosts, app.wsgi_app))


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
    fast, flask = (client.get(f"/api/parcels.getPlace?{query}") for client in (node.fast, node.flask))

    assert fast.status_code == flask.status_code == status
    assert fast.text == flask.text
    varying = {"Content-Length": "", LAG_HEADER: ""}
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
    assert json.loads(unknown.text)["detail"] == "Unknown: other; allowed: minOffset, parcelId."


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


def test_index_page_lists_every_read_model_with_examples(node: Node) -> None:
    page = node.fast.get("/").text

    assert 'href="/api/parcels.getPlace?parcelId=A%201/2"' in page
    assert 'href="/api/read-models/parcels/records/A%201/2"' in page
    assert "/api/parcels.weigh" in page
    assert "{&#34;parcelId&#34;: &#34;A&#34;, &#34;grams&#34;: 5}" in page
    assert 'href="/api/customers.getBalance?customerId=1"' in page
    assert "/api/balance.withdrawFunds" in page
    for path in ("/api/read-models/parcels/records/A%201/2", "/api/parcels.getPlace?parcelId=A%201/2"):
        assert node.fast.get(path).status_code == 200
