"""A query node's application over a real store, with a read model `parcels` that has one record, for the tests of its HTTP API."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from types import MappingProxyType

import fastavro
from flask.testing import FlaskClient
from werkzeug.test import Client

from include.declarations.load import load_catalog
from include.kafka.wire_format import header
from include.nodes.peers import Peers
from include.settings import Settings
from query_api.access.credentials import Credentials
from query_api.changes.change_feeds import ChangeFeeds
from query_api.cluster import node_state
from query_api.cluster.node_state import ModelState, NodeState, PartitionState, VersionState
from query_api.http.access.guard import Guard
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
from include.declarations.api import Command, Lookup
from include.declarations.command_fields import IntegerField, TextField
LOOKUPS = (Lookup("/api/parcels.getPlace", "parcelId", ("place", "fee", "seen", "event_count", "later"), 20, "A 1/2"),)
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
    """Return the Avro schema of an event type of the read model."""
    time_type = {"type": "long", "logicalType": "timestamp-millis"}
    own = [{"name": "id", "type": "string"}, {"name": "occurredOn", "type": time_type}]
    record = {"type": "record", "name": name, "namespace": "t", "foldlake.key": "parcelId"}
    return json.dumps(record | {"fields": [*own, {"name": "parcelId", "type": "string"}, *fields]})


def parcels_settings(tmp_path: Path) -> Settings:
    """Return the settings of a node with the read model, and without Kafka."""
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
    """A query node's application over a real store with a record of each key; `flask` is the application behind the fast path."""

    def __init__(
        self,
        settings: Settings,
        rekeyed: Mapping[str, str] = MappingProxyType({}),
        keys: Sequence[str] = (KEY,),
    ) -> None:
        catalog = load_catalog(settings.declaration_folders)
        model = next(api.model for api in catalog.apis if api.model.name == "parcels")
        schema = model.state_schema_of(1)
        value = BytesIO()
        value.write(header(SCHEMA_ID))
        fastavro.schemaless_writer(value, fastavro.parse_schema(schema.parsed()), RECORD)
        changelog = Binding("cluster", "parcels.v1.changelog", "topic id")
        store = StoreDirectory(settings.store_dir, LmdbBackend(64 * 1024 * 1024)).open_writer(
            "parcels", 1, 1, changelog
        )
        changes = [Change(key.encode(), 3, offset, value.getvalue()) for offset, key in enumerate(keys)]
        store.commit({0: changes}, {0: ChangelogPosition(len(keys), time.time())}, {SCHEMA_ID: schema.text})
        store.close()
        self.settings = settings
        self.beat()
        lookups = Lookups(LocalLookup(settings), Peers())
        router = LookupRouter(lookups, compile_lookups(catalog.apis, lookups), dict(rekeyed))
        hosts = AllowedHosts(settings)
        credentials = Credentials.of(settings) if settings.auth.is_on else None
        feeds = ChangeFeeds(settings, lookups.local.state)
        self.app = create_app(settings, hosts, lookups, router, catalog, feeds, credentials)
        guard = None if credentials is None else Guard.of(settings, credentials, self.app, catalog, hosts)
        self.flask: FlaskClient = self.app.test_client()
        self.router, self.hosts = router, hosts
        self.fast = Client(FastPath(router, hosts, self.app.wsgi_app, guard))

    def beat(self) -> None:
        """Publish the node's state, as its materializer does every second."""
        at = time.time()
        partition = PartitionState(is_ready=True, confirmed_at=at, as_of=at)
        held = {1: VersionState(1, "live", "parcels.v1.changelog", {0: partition})}
        url = self.settings.advertised_url
        model = ModelState("parcels", "parcels", 1, 1, 1, held, frozenset({0}), owners={0: url})
        state = NodeState(self.settings.node.name, url, models={"parcels": model})
        node_state.write(self.settings.store_dir, replace(state, written_at=at))
