"""A joined lookup answers with the fields of both read models, or says why it cannot."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any

import fastavro
import pytest
from werkzeug.test import Client

from include.declarations.load import load_catalog
from include.declarations.read_model import ReadModel
from include.kafka.wire_format import header
from include.nodes.peers import REASON_HEADER, Peers
from include.settings import Settings
from query_api.changes.change_feeds import ChangeFeeds
from query_api.cluster import node_state
from query_api.cluster.node_state import ModelState, NodeState, PartitionState, VersionState
from query_api.http.app import create_app
from query_api.http.lookups.named_lookups import compile_lookups
from query_api.http.lookups.router import LookupRouter
from query_api.http.request_checks import AllowedHosts
from query_api.http.wsgi import FastPath
from query_api.lookup.local_lookup import LocalLookup
from query_api.lookup.lookups import Lookups
from query_api.store.base import Binding, Change, ChangelogPosition
from query_api.store.directory import StoreDirectory
from query_api.store.lmdb import LmdbBackend

MODULE = """
from include.declarations.api import LookupJoin, Lookup
from include.declarations.read_model import ReadModel, StateField, decimal_type
READ_MODEL = ReadModel({name!r}, {name!r}, ("FundsAdded",), lambda: None, ({state}), {{1: dict}})
LOOKUPS = ({lookup})
"""
SCANS = 'Lookup("/api/scans.get", "parcelId", ("scans",), join=LookupJoin("parcels", ("place", "fee"))),'
PATH = "/api/scans.get?parcelId="
POSITION = {"event_count": 1, "source_partition": 0, "source_offset": 0, "occurred_on": 0}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "scans.py").write_text(
        MODULE.format(name="scans", state='StateField("scans", "long"),', lookup=SCANS)
    )
    state = 'StateField("place", "string"), StateField("fee", decimal_type(8, 3))'
    (folder / "parcels.py").write_text(MODULE.format(name="parcels", state=state, lookup=""))
    return Settings.of(home=tmp_path / "home", read_models_dir=folder, kafka_bootstrap="127.0.0.1:1")


def stored(settings: Settings, model: ReadModel, schema_id: int, records: dict[str, dict[str, Any]]) -> None:
    """Create the store of a read model's version 1 with these states."""
    directory = StoreDirectory(settings.store_dir, LmdbBackend(64 * 1024 * 1024))
    store = directory.open_writer(model.name, 1, 1, Binding("cluster", f"{model.name}.v1.changelog", "id"))
    changes = []
    for number, (key, state) in enumerate(records.items()):
        value = BytesIO()
        value.write(header(schema_id))
        fastavro.schemaless_writer(
            value, fastavro.parse_schema(model.state_schema.parsed()), state | POSITION
        )
        changes.append(Change(key.encode(), 1, number, value.getvalue()))
    store.commit({0: changes}, {0: ChangelogPosition(9, time.time())}, {schema_id: model.state_schema.text})
    store.close()


def state_of(settings: Settings, name: str, owner: str | None = None, *, is_ready: bool = True) -> ModelState:
    url = settings.advertised_url
    partitions = {0: PartitionState(is_ready=is_ready)} if owner is None else {}
    versions = {1: VersionState(1, "live", f"{name}.v1.changelog", partitions)}
    owned = frozenset({0}) if owner is None else frozenset()
    return ModelState(name, name, 1, 1, 1, versions, owned, owners={0: owner or url})


def client(settings: Settings, parcels: ModelState) -> Client:
    """Return a client of a node with the scans of three parcels, and with this state of the read model with which they are joined."""
    models = load_catalog(settings.declaration_folders).models
    stored(settings, models["scans"], 7, {key: {"scans": 3} for key in ("a", "b", "c")})
    stored(settings, models["parcels"], 8, {"a": {"place": 'a "depot"', "fee": Decimal("-1.250")}})
    states = {"scans": state_of(settings, "scans"), "parcels": parcels}
    node = NodeState(settings.node.name, settings.advertised_url, models=states)
    node_state.write(settings.store_dir, replace(node, written_at=time.time()))
    lookups = Lookups(LocalLookup(settings), Peers())
    catalog = load_catalog(settings.declaration_folders)
    router = LookupRouter(lookups, compile_lookups(catalog.apis, lookups))
    hosts = AllowedHosts(settings)
    feeds = ChangeFeeds(settings, lookups.local.state)
    app = create_app(settings, hosts, lookups, router, catalog, feeds)
    return Client(FastPath(router, hosts, app.wsgi_app))


def test_an_answer_has_the_fields_of_both(settings: Settings) -> None:
    node = client(settings, state_of(settings, "parcels"))

    assert node.get(f"{PATH}a").text == '{"scans":3,"place":"a \\"depot\\"","fee":-1.250}'


def test_the_fields_of_a_key_that_the_other_read_model_lacks_are_null(settings: Settings) -> None:
    node = client(settings, state_of(settings, "parcels"))

    assert node.get(f"{PATH}b").text == '{"scans":3,"place":null,"fee":null}'
    assert node.get(f"{PATH}nobody").status_code == 404


def test_an_answer_that_cannot_be_joined_yet_is_refused(settings: Settings) -> None:
    node = client(settings, state_of(settings, "parcels", is_ready=False))

    refused = node.get(f"{PATH}a")

    assert (refused.status_code, refused.headers[REASON_HEADER]) == (503, "not-ready")
    assert "The record of parcels cannot be read" in refused.text


ANSWERS: dict[str, tuple[int, dict[str, str], str]] = {
    "a": (200, {}, '{"read_model":"parcels","state":{"place":"far","fee":2.500},"event_count":1}'),
    "b": (404, {REASON_HEADER: "unknown-key"}, "{}"),
    "c": (404, {REASON_HEADER: "unknown-model"}, "{}"),
}


@pytest.fixture
def other_node() -> Iterator[str]:
    """The URL of a node that owns the records of the other read model."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = ANSWERS[self.path.rpartition("/")[2].removesuffix("?version=1")]
            self.send_response(status)
            for name, text in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_the_record_of_the_other_read_model_may_be_on_another_node(
    settings: Settings, other_node: str
) -> None:
    node = client(settings, state_of(settings, "parcels", other_node))

    assert node.get(f"{PATH}a").text == '{"scans":3,"place":"far","fee":2.500}'
    assert json.loads(node.get(f"{PATH}b").text) == {"scans": 3, "place": None, "fee": None}
    assert node.get(f"{PATH}c").status_code == 503
