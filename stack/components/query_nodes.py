"""The embedded query nodes: one materializer and one HTTP server per port, which share a store."""

from http import HTTPStatus
from pathlib import Path

import httpx

from include.nodes.node_url import NodeUrl, PeerRule
from include.nodes.placements import placements
from include.settings import CHECKOUT, Settings
from query_api.access.listener import require_protection
from query_api.cluster import node_state
from query_api.http.request_checks import AllowedHosts
from query_api.store.backends import load_backend
from stack.readiness import loopback_client
from stack.supervision.process import Held, Process
from stack.tools import Tools

START_ORDER = 20
# A materializer publishes its state every second.
MATERIALIZER_AGE_S = 5.0
# What both processes of a node run.
CODE = ("include", "query_api", "requirements.txt")


def check(settings: Settings) -> None:
    """Raise SettingsError for a URL at which no other node can reach a node, and for an entry of a list that is not valid."""
    placements(settings)
    for node in node_settings(settings):
        AllowedHosts(node.node)
        PeerRule.of_node(node.node)
        require_protection(node)


def prepare(settings: Settings) -> None:
    """Create the directory of each node's store."""
    load_backend(settings)  # raises for an unknown backend
    for node in node_settings(settings):
        node.store_dir.mkdir(parents=True, exist_ok=True)


def processes(settings: Settings) -> list[Process]:
    """Return the two processes of every node."""
    return [process for node in node_settings(settings) for process in _node_processes(node)]


def node_settings(settings: Settings) -> list[Settings]:
    """Return the settings of each node: `node-1` on the first of the query ports, `node-2` on the next, ...

    When the only query port is also the node's port, the settings are those of that node (one node per container). Otherwise
    each node has the host of `node_url`, if that is set, and its own port.
    """
    if settings.query_ports == (settings.node.port,):
        return [settings]
    return [
        settings.changed(
            node_name=f"node-{number}",
            node_port=port,
            node_url=_url_at(settings.node.url, port),
            node_store_dir=None,
        )
        for number, port in enumerate(settings.query_ports, start=1)
    ]


def _url_at(url: str, port: int) -> str:
    try:
        return NodeUrl.parse(url).at_port(port) if url else ""
    except ValueError:
        return url  # `check` reports it


def _node_processes(node: Settings) -> list[Process]:
    python = str(Tools(node.tools).main_python)
    environment = {
        "FOLDLAKE_NODE_NAME": node.node.name,
        "FOLDLAKE_NODE_PORT": str(node.node.port),
        "FOLDLAKE_NODE_URL": node.node.url,
        "FOLDLAKE_NODE_STORE_DIR": str(node.store_dir),
        "PYTHONPATH": str(CHECKOUT),
    }
    materializer = Process(
        name=f"{node.node.name}-materializer",
        command=(python, "-m", "query_api.materializer"),
        start_order=START_ORDER,
        is_ready=lambda: _is_materializer_alive(node.store_dir),
        environment=environment,
        stop_timeout_s=25,
        unit=node.node.name,
        reads_job_settings=False,
        reads_declarations=True,
        code=CODE,
        held=Held(),
    )
    http = Process(
        name=f"{node.node.name}-http",
        command=(python, "-m", "query_api.server"),
        start_order=START_ORDER,
        # Whether the node is alive. It is ready for lookups only once it has a version to serve.
        is_ready=lambda: _is_ok(node.node.port, "healthz"),
        port=node.node.port,
        environment=environment,
        port_setting="FOLDLAKE_QUERY_PORTS",
        unit=node.node.name,
        is_serving=lambda: _is_ok(node.node.port, "readyz"),
        reads_job_settings=False,
        reads_declarations=True,
        code=CODE,
        held=Held(node.node.bind, node.node.http_workers),
    )
    # A new server answers from the store while one materializer takes over from the other.
    return [http, materializer]


def _is_materializer_alive(store_dir: Path) -> bool:
    state = node_state.read(store_dir)
    return state is not None and state.age_s() < MATERIALIZER_AGE_S


def _is_ok(port: int, path: str) -> bool:
    try:
        return loopback_client().get(f"http://127.0.0.1:{port}/{path}").status_code == HTTPStatus.OK
    except httpx.HTTPError:
        return False
