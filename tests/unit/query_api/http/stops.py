"""A query node over real stores with every kind of lookup, and another node: for the tests of what answers say about themselves."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import fastavro
from werkzeug.test import Client

from include.declarations.load import load_catalog
from include.kafka.wire_format import header
from include.nodes.peers import Peers
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
from query_api.lookup.routing import partition_of
from query_api.store.base import Binding, Change, ChangelogPosition
from query_api.store.directory import StoreDirectory
from query_api.store.lmdb import LmdbBackend

PARTITIONS = 2
STOPS = """
from datetime import timedelta
from include.declarations.api import LookupJoin, Lookup
from include.declarations.api import Location
from include.declarations.read_model import ReadModel, StateField
from include.declarations.windows import HoppingWindow
from include.declarations.windows import WindowLookup
READ_MODEL = ReadModel("stops", "stops", ("FundsAdded",), lambda: None, (
    StateField("n", "long"), StateField("lat", "double"), StateField("lon", "double"),
), {1: dict})
LOOKUPS = (
    Lookup("/api/stops.get", "stopId", ("n", "lat")),
    Lookup("/api/stops.getWithFee", "stopId", ("n",), join=LookupJoin("fees", ("fee",))),
)
WINDOW = HoppingWindow(timedelta(seconds=2), timedelta(seconds=2))
WINDOW_LOOKUPS = (WindowLookup("/api/stops.getWindows", "stopId", WINDOW, ("n",)),)
LOCATION = Location("lat", "lon")
"""
FEES = """
from include.declarations.read_model import ReadModel, StateField
READ_MODEL = ReadModel("fees", "fees", ("FundsAdded",), lambda: None, (StateField("fee", "long"),), {1: dict})
"""
POSITION = {"event_count": 1, "source_partition": 0, "source_offset": 0, "occurred_on": 0}


def stops_settings(tmp_path: Path) -> Settings:
    """Return the settings of a node with the read models, and without Kafka."""
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "stops.py").write_text(STOPS)
    (folder / "fees.py").write_text(FEES)
    return Settings.of(home=tmp_path / "home", read_models_dir=folder, kafka_bootstrap="127.0.0.1:1")


def window_keys(item: str, number: int, of_partition: int | None = None) -> list[str]:
    """Return the keys of an item's first windows of two seconds, of all partitions or of one."""
    keys = [f"{item}/{datetime.fromtimestamp(2 * i, UTC):%Y-%m-%dT%H:%M:%SZ}" for i in range(number)]
    return [key for key in keys if of_partition in {None, partition_of(key.encode(), PARTITIONS)}]


@dataclass
class StopsNode:
    """A node that has partition 0 of the stops; `owner` has partition 1, if it is another node's URL.

    confirmed_s_ago: for each read model, how long ago the end of its partitions was confirmed.
    """

    settings: Settings
    owner: str | None = None
    confirmed_s_ago: Mapping[str, float] = field(default_factory=dict)
    publishing: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:  # noqa: D105 - creates the application
        catalog = load_catalog(self.settings.declaration_folders)
        lookups = Lookups(LocalLookup(self.settings), Peers())
        router = LookupRouter(lookups, compile_lookups(catalog.apis, lookups))
        hosts = AllowedHosts(self.settings)
        feeds = ChangeFeeds(self.settings, lookups.local.state)
        self.app = create_app(self.settings, hosts, lookups, router, catalog, feeds)
        self.client = Client(FastPath(router, hosts, self.app.wsgi_app))

    def store(self, name: str, version: int, states: Mapping[str, Mapping[str, Any]]) -> None:
        """Create the store of a version with these states of keys."""
        model = load_catalog(self.settings.declaration_folders).models[name]
        schema = fastavro.parse_schema(model.state_schema.parsed())
        directory = StoreDirectory(self.settings.store_dir, LmdbBackend(64 * 1024 * 1024))
        binding = Binding("cluster", f"{name}.v{version}.changelog", "id")
        store = directory.open_writer(name, version, PARTITIONS, binding)
        changes: dict[int, list[Change]] = {partition: [] for partition in range(PARTITIONS)}
        for number, (key, state) in enumerate(states.items()):
            value = BytesIO()
            value.write(header(7))
            fastavro.schemaless_writer(value, schema, {**state, **POSITION})
            partition = partition_of(key.encode(), PARTITIONS)
            changes[partition].append(Change(key.encode(), 1, number, value.getvalue()))
        positions = {partition: ChangelogPosition(99, time.time()) for partition in changes}
        store.commit(changes, positions, {7: model.state_schema.text})
        store.close()

    def publish(self, live: int = 1, versions: tuple[int, ...] = (1,)) -> None:
        """Publish the node's state, with this live version of the stops, as its materializer does every second."""
        url = self.settings.advertised_url
        models = {
            name: self._model(name, url, number, of_model)
            for name, number, of_model in (("stops", live, versions), ("fees", 1, (1,)))
        }
        state = NodeState(self.settings.node.name, url, models=models)
        # Several requests to the other node may publish at the same time. A materializer has one thread.
        with self.publishing:
            node_state.write(self.settings.store_dir, replace(state, written_at=time.time()))

    def _model(self, name: str, url: str, live: int, versions: tuple[int, ...]) -> ModelState:
        at = time.time() - self.confirmed_s_ago.get(name, 0.0)
        own = range(PARTITIONS) if self.owner is None else (0,)
        held = dict.fromkeys(own, PartitionState(is_ready=True, confirmed_at=at, as_of=at))
        owners = {
            partition: url if partition in own else self.owner or url for partition in range(PARTITIONS)
        }
        states = {
            number: VersionState(number, "live", f"{name}.v{number}.changelog", held) for number in versions
        }
        return ModelState(name, name, PARTITIONS, 1, live, states, frozenset(own), owners)


class _Server(ThreadingHTTPServer):
    request_queue_size = 64


Answer = tuple[int, dict[str, str], str]


@contextmanager
def other_node(answer: Callable[[str], Answer]) -> Iterator[str]:
    """Run another node, which answers each target, path and query, as `answer` says; yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = answer(self.path)
            self.send_response(status)
            for name, text in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with _Server(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
