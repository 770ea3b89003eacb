"""The embedded query nodes: one materializer and one HTTP server per port, which share a store.

Unless FOLDLAKE_AUTH is none, each has a second HTTP server, for other nodes and jobs.
"""

from http import HTTPStatus
from pathlib import Path

import httpx

from include.errors import SettingsError
from include.nodes.node_url import NodeUrl, PeerRule, is_loopback, reachable_url
from include.nodes.peer_tls import VARIABLES, TlsFiles, certificate_path, health_context, node_tls_files
from include.nodes.placements import placements
from include.settings import CHECKOUT, Settings
from query_api.cluster import node_state
from query_api.http.request_checks import AllowedHosts
from query_api.listener import (
    VARIABLE,
    Role,
    caller_files,
    listener_of,
    require_protection,
    require_usable,
)
from query_api.store.backends import load_backend
from stack.readiness import loopback_client, tls_client
from stack.supervision.process import Held, Process
from stack.tools import Tools

START_ORDER = 20
# A materializer publishes its state every second.
MATERIALIZER_AGE_S = 5.0
# What both processes of a node run.
CODE = ("include", "query_api", "requirements.txt")


def check(settings: Settings) -> None:
    """Raise SettingsError for a URL at which no other node can reach a node, an invalid entry of a list, and files of TLS that are not usable."""
    placements(settings)
    if (files := caller_files(settings)) is not None:
        require_usable(files)
    if settings.has_peer_listener and settings.node_tls.cert_file:
        require_usable(node_tls_files(settings))
    for node in node_settings(settings):
        AllowedHosts(node)
        PeerRule.of_node(node)
        require_protection(node)


def prepare(settings: Settings) -> None:
    """Create the directory of each node's store, and the certificates with which nodes and jobs reach them, if they are needed."""
    load_backend(settings)  # raises for an unknown backend
    nodes = node_settings(settings)
    for node in nodes:
        node.store_dir.mkdir(parents=True, exist_ok=True)
    if settings.has_peer_listener and not settings.node_tls.cert_file:
        _create_certificates(settings, nodes)


def _create_certificates(settings: Settings, nodes: list[Settings]) -> None:
    from include.nodes import certificates  # noqa: PLC0415 - each command would import the library for cryptography

    hosts = node_hosts(settings)
    is_alone = nodes == [settings] and not all(map(is_loopback, hosts.values()))
    if is_alone and not certificate_path(settings.home, settings.node.name).exists():
        raise SettingsError(
            f"The node needs a certificate of the CA of all nodes: set {', '.join(VARIABLES)}. `./foldlake certificates create` makes them."
        )
    certificates.create(settings.home, hosts)


def node_hosts(settings: Settings) -> dict[str, str]:
    """Return the host at which others reach each node, by the node's name."""
    return {node.node.name: reachable_url(node).host for node in node_settings(settings)}


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
            node_peer_port=settings.node.peer_port + number - 1,
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
        **_peer_environment(node),
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
    http = _server(node, Role.CALLERS, environment)
    peers = [_server(node, Role.PEERS, environment)] if node.has_peer_listener else []
    # A new server answers from the store while one materializer takes over from the other.
    return [http, *peers, materializer]


def _peer_environment(node: Settings) -> dict[str, str]:
    """Return the variables of a node that others reach by TLS."""
    if not node.has_peer_listener:
        return {}
    files = node_tls_files(node, node.node.name)
    return {
        "FOLDLAKE_NODE_PEER_PORT": str(node.node.peer_port),
        **dict(zip(VARIABLES, map(str, files.paths), strict=True)),
    }


def _server(node: Settings, role: Role, environment: dict[str, str]) -> Process:
    """Return the server of one of a node's listeners."""
    listener = listener_of(node, role)
    is_for_callers = role is Role.CALLERS
    return Process(
        name=listener.name.replace(" ", "-"),
        command=(str(Tools(node.tools).main_python), "-m", "query_api.server"),
        start_order=START_ORDER,
        # Whether the node is alive. It is ready for lookups only once it has a version to serve.
        is_ready=lambda: _is_ok(listener.port, "healthz", listener.files),
        port=listener.port,
        environment=environment if is_for_callers else {**environment, VARIABLE: str(role)},
        port_setting="FOLDLAKE_QUERY_PORTS" if is_for_callers else "FOLDLAKE_NODE_PEER_PORT",
        unit=node.node.name,
        is_serving=lambda: _is_ok(listener.port, "readyz", listener.files),
        reads_job_settings=False,
        reads_declarations=True,
        code=CODE,
        held=Held(node.node.bind, listener.workers),
    )


def _is_materializer_alive(store_dir: Path) -> bool:
    state = node_state.read(store_dir)
    return state is not None and state.age_s() < MATERIALIZER_AGE_S


def _is_ok(port: int, path: str, files: TlsFiles | None = None) -> bool:
    try:
        if files is None:
            reply = loopback_client().get(f"http://127.0.0.1:{port}/{path}")
        else:
            with tls_client(health_context(files)) as client:
                reply = client.get(f"https://127.0.0.1:{port}/{path}")
    except (httpx.HTTPError, OSError):
        return False
    return reply.status_code == HTTPStatus.OK
