"""The client of a stream of records: it continues after an interruption, and tells an end from a cut."""

import io
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pytest

from include.nodes.record_client import OWNER, PartitionReplica, ReplicaUnavailableError
from include.nodes.record_requests import ARROW_TYPE, BATCH_END, NO_SAMPLING, KeySample
from include.nodes.record_stream import stream_records

WAIT_S = 0.5
KEYS = ["a", "b", "c", "ü"]
SCHEMA = pa.schema([("key", pa.string())])


class Node(HTTPServer):
    """A node that sends one key a batch. steps: for each request, a status other than 200, or after how many batches it stops; then all.

    cut_at: for each request, after how many bytes of its answer the connection ends.
    """

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.cut_at: list[int] = []
        self.queries: list[dict[str, str]] = []
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    """Handles one request."""

    server: Node

    def do_GET(self) -> None:
        """Send the keys after `after`."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        self.server.queries.append(query)
        step = self.server.steps.pop(0) if self.server.steps else len(KEYS) + 1
        if step >= 300:
            self.send_error(step)
            return
        keys = [key for key in KEYS if key > query.get("after", "")]
        body = io.BytesIO()
        with pa.ipc.new_stream(body, SCHEMA) as writer:
            for number, key in enumerate(keys[:step]):
                given = {BATCH_END: "true"} if number == len(keys) - 1 else None
                writer.write_batch(pa.record_batch([[key]], SCHEMA), custom_metadata=given)
        self.send_response(200)
        self.send_header("Content-Type", ARROW_TYPE)
        self.end_headers()
        self.wfile.write(body.getvalue()[: self.server.cut_at.pop(0) if self.server.cut_at else None])

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def node() -> Iterator[Node]:
    with Node() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def keys_of(node: Node, sample: KeySample = NO_SAMPLING) -> list[str]:
    replica = PartitionReplica("node-1", f"http://127.0.0.1:{node.server_port}", 2, OWNER)
    batches = stream_records(replica, "balance", 3, sample, WAIT_S)
    return [key for batch in batches for key in batch.column("key").to_pylist()]


def test_a_stream_has_all_keys(node: Node) -> None:
    assert keys_of(node) == KEYS
    assert node.queries == [{"format": "arrow", "partition": "2", "version": "3"}]


def test_a_sample_is_a_parameter_of_the_request(node: Node) -> None:
    keys_of(node, KeySample(3, 100))

    assert node.queries[0]["sample"] == "3/100"


@pytest.mark.parametrize("steps", [[2], [1, 1, 1], [503, 2, 503], [0, 421, 3]])
def test_a_stream_that_is_cut_off_continues_after_the_last_key(node: Node, steps: list[int]) -> None:
    node.steps = steps

    assert keys_of(node) == KEYS


def test_a_stream_that_is_cut_off_inside_of_a_batch_continues_after_the_last_whole_one(node: Node) -> None:
    # The schema and a part of a batch, then a batch and a part of the next one.
    node.cut_at = [300, 700]

    assert keys_of(node) == KEYS


def test_the_time_limit_is_that_of_each_batch(node: Node) -> None:
    node.steps = [1, 503, 1, 503, 1, 503]
    started_s = time.monotonic()

    assert keys_of(node) == KEYS
    assert time.monotonic() - started_s > WAIT_S


def test_a_node_that_sends_nothing_raises_an_error(node: Node) -> None:
    node.steps = [503] * 100

    with pytest.raises(ReplicaUnavailableError, match=r"node-1 partition 2 .* does not respond to .*: 503"):
        keys_of(node)


def test_a_request_that_the_node_rejects_is_not_repeated(node: Node) -> None:
    node.steps = [1, 404]

    with pytest.raises(ReplicaUnavailableError, match=r"rejected /api/read-models/balance/records: 404"):
        keys_of(node)
    assert len(node.queries) == 2
