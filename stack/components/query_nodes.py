"""The embedded query nodes: for each port a materializer and an HTTP server, over a store of their own."""

import urllib.error
import urllib.request
from http import HTTPStatus

from include.settings import CHECKOUT, Settings
from query_api.cluster import node_state
from stack.supervision.process import Process
from stack.tools import Tools

START_ORDER = 20
READY_TIMEOUT_S = 1.5
# A materializer says every second that it is alive.
MATERIALIZER_AGE_S = 5.0


def prepare(settings: Settings) -> None:
    """Make the directory of each node's store."""
    for node in node_settings(settings):
        node.store_dir.mkdir(parents=True, exist_ok=True)


def processes(settings: Settings) -> list[Process]:
    """Return the two processes of every node."""
    return [process for node in node_settings(settings) for process in _node_processes(node)]


def node_settings(settings: Settings) -> list[Settings]:
    """Return the settings of each node: `node-1` on the first of the query ports, `node-2` on the next, ...

    With one query port that is also the node's port, the node is the one that the settings name (one node a container).
    """
    if settings.query_ports == (settings.node.port,):
        return [settings]
    return [
        settings.changed(node_name=f"node-{number}", node_port=port, node_url="", node_store_dir=None)
        for number, port in enumerate(settings.query_ports, start=1)
    ]


def _node_processes(node: Settings) -> list[Process]:
    python = str(Tools(node).main_python)
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
        is_ready=lambda: _is_materializer_alive(node),
        environment=environment,
        stop_timeout_s=25,
        reads_declarations=True,
    )
    http = Process(
        name=f"{node.node.name}-http",
        command=(python, "-m", "query_api.server"),
        start_order=START_ORDER,
        is_ready=lambda: _is_answering(node.node.port),
        port=node.node.port,
        environment=environment,
        port_setting="FOLDLAKE_QUERY_PORTS",
        reads_declarations=True,
    )
    return [materializer, http]


def _is_materializer_alive(node: Settings) -> bool:
    state = node_state.read(node.store_dir)
    return state is not None and state.age_s() < MATERIALIZER_AGE_S


def _is_answering(port: int) -> bool:
    """Whether the node is alive; that it is ready to answer lookups comes later, once there is something to answer."""
    try:
        with _DIRECT.open(f"http://127.0.0.1:{port}/healthz", timeout=READY_TIMEOUT_S) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except (OSError, urllib.error.URLError):
        return False


# Never through the user's proxy: the node is on this machine.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
