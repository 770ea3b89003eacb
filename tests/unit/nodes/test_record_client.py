"""Pages of a node are waited for one by one: a partition with many takes as long as it takes."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from include.nodes.record_client import OWNER, HeldPartition, NodeClient, NotHeldError
from include.settings import Settings
from spark_jobs.quality.stores.base import Sample

WAIT_S = 1.0
SLOW_S = WAIT_S * 1.2


class Node(HTTPServer):
    """A node that gives a page for each status that it is told, the first one late."""

    def __init__(self, statuses: list[int]) -> None:
        self.statuses = statuses
        self.pages = 0
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    """Answers for one page."""

    server: Node

    def do_GET(self) -> None:
        """Give the next page, or refuse."""
        if self.server.pages == 0:
            time.sleep(SLOW_S)
        status = self.server.statuses.pop(0) if self.server.statuses else 503
        self.server.pages += status == 200
        body = json.dumps({"records": [], "next": "more" if self.server.statuses else None}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    with Node(list(request.param)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def pages(node: Node, home: Path) -> list[str]:
    settings = Settings.of(home=home)
    client = NodeClient(settings, "balance", 1, "balance")
    held = HeldPartition("node-1", f"http://127.0.0.1:{node.server_port}", 0, OWNER)
    try:
        return list(client.pages(held, Sample(), WAIT_S))
    finally:
        client.close()


@pytest.mark.parametrize("node", [[200, 503, 200]], indirect=True)
def test_each_page_has_a_time_of_its_own(node: Node, tmp_path: Path) -> None:
    assert len(pages(node, tmp_path)) == 2


@pytest.mark.parametrize("node", [[200, 503] + [503] * 100], indirect=True)
def test_a_node_that_does_not_answer_is_given_up(node: Node, tmp_path: Path) -> None:
    with pytest.raises(NotHeldError, match="does not answer for /api/read-models/balance/records: 503"):
        pages(node, tmp_path)
