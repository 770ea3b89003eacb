"""The client of one node's records: retries, rejected requests and unknown keys, against a small HTTP server."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from include.nodes.node_url import PeerRule
from include.nodes.peers import HOP_ANY, HOP_HEADER, REASON_HEADER
from include.nodes.record_client import OWNER, NodeClient, PartitionReplica, ReplicaUnavailableError
from include.settings import KafkaConnection
from tests.support.http.played_server import HTML, Reply, played_server

WAIT_S = 1.0
SLOW_S = WAIT_S * 1.2


class Node(HTTPServer):
    """A node that responds with these statuses in turn, the first one late, then with 503."""

    def __init__(self, statuses: list[int]) -> None:
        self.statuses = statuses
        self.answered = 0
        self.targets: list[str] = []
        self.hops: set[str | None] = set()
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    """Handles one request."""

    server: Node

    def do_GET(self) -> None:
        """Respond with the next status: 200 is a page, 404 an unknown key."""
        if self.server.answered == 0:
            time.sleep(SLOW_S)
        status = self.server.statuses.pop(0) if self.server.statuses else 503
        self.server.answered += status == 200
        self.server.targets.append(self.path)
        self.server.hops.add(self.headers[HOP_HEADER])
        body = json.dumps({"records": ["ü"], "next": "a b" if self.server.statuses else None}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/json")
        if status == 404:
            self.send_header(REASON_HEADER, "unknown-key")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    with Node(list(request.param)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def client() -> Iterator[NodeClient]:
    client = NodeClient(KafkaConnection("127.0.0.1:1"), PeerRule(), "balance", 1, "balance")
    yield client
    client.close()


def replica_on(node: Node) -> PartitionReplica:
    return PartitionReplica("node-1", f"http://127.0.0.1:{node.server_port}", 0, OWNER)


@pytest.mark.parametrize("node", [[503] * 100], indirect=True)
def test_a_node_that_does_not_respond_raises_an_error(client: NodeClient, node: Node) -> None:
    with pytest.raises(
        ReplicaUnavailableError, match="does not respond to /api/read-models/balance/records: 503"
    ):
        client.key_count(replica_on(node), time.monotonic() + WAIT_S)
    assert node.hops == {HOP_ANY}


@pytest.mark.parametrize("node", [[400, 200]], indirect=True)
def test_a_request_that_the_node_rejects_is_not_retried(client: NodeClient, node: Node) -> None:
    with pytest.raises(ReplicaUnavailableError, match="rejected /api/read-models/balance/records: 400"):
        client.key_count(replica_on(node), time.monotonic() + SLOW_S + WAIT_S)

    assert len(node.targets) == 1


@pytest.mark.parametrize("node", [[404]], indirect=True)
def test_the_record_of_an_unknown_key_is_none(client: NodeClient, node: Node) -> None:
    assert client.record(replica_on(node), "a/b %ü?", time.monotonic() + WAIT_S) is None
    assert node.targets == ["/api/read-models/balance/records/a%2Fb%20%25%C3%BC%3F?version=1"]


@pytest.mark.parametrize("node", [[503, 200]], indirect=True)
def test_a_record_is_asked_for_again_until_the_node_is_ready(client: NodeClient, node: Node) -> None:
    record = client.record(replica_on(node), "key", time.monotonic() + SLOW_S + WAIT_S)

    assert record == json.dumps({"records": ["ü"], "next": None})
    assert node.targets == ["/api/read-models/balance/records/key?version=1"] * 2


def test_a_node_that_is_down_raises_an_error(client: NodeClient) -> None:
    with Node([]) as stopped:
        port = stopped.server_port
    replica = PartitionReplica("node-1", f"http://127.0.0.1:{port}", 0, OWNER)

    with pytest.raises(ReplicaUnavailableError, match="Connection refused"):
        client.key_count(replica, time.monotonic())


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, HTML, {"Content-Type": "text/html"}),
        Reply(302, "", {"Location": "/elsewhere"}),
        Reply(401, HTML),
        Reply(403, HTML),
        Reply(404, HTML),
    ],
)
def test_a_reply_of_no_node_is_neither_a_record_nor_a_missing_one(client: NodeClient, reply: Reply) -> None:
    with played_server() as server:
        server.otherwise = reply
        replica = PartitionReplica("node-1", server.url, 0, OWNER)

        with pytest.raises(ReplicaUnavailableError):
            client.record(replica, "key", time.monotonic() + WAIT_S)
        with pytest.raises(ReplicaUnavailableError):
            client.key_count(replica, time.monotonic() + WAIT_S)


@pytest.mark.parametrize("status", [408, 421, 429, 502, 503, 504])
def test_a_busy_node_gets_the_request_again(client: NodeClient, status: int) -> None:
    with played_server() as server:
        server.otherwise = Reply(status, HTML)
        replica = PartitionReplica("node-1", server.url, 0, OWNER)

        with pytest.raises(ReplicaUnavailableError, match=f"does not respond .* {status}"):
            client.key_count(replica, time.monotonic() + WAIT_S)

        assert len(server.requests) > 1
