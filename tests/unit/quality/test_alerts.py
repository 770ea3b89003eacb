"""A failed check is posted to the webhook, if one is set; a failed delivery is logged."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from include.quality.alerts import alert
from tests.unit.quality.test_report import FAILED


class Webhook(HTTPServer):
    """A server that accepts or rejects alerts."""

    def __init__(self) -> None:
        self.received: list[dict[str, Any]] = []
        self.status = 200
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    """Handles one alert."""

    server: Webhook

    def do_POST(self) -> None:
        """Store the body."""
        length = int(self.headers["Content-Length"])
        self.server.received.append(json.loads(self.rfile.read(length)))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_webhook_receives_the_failed_expectations(webhook: Webhook) -> None:
    assert alert(f"http://127.0.0.1:{webhook.server_port}/hook", FAILED)

    (body,) = webhook.received
    assert (body["read_model"], body["version"]) == ("balance", 3)
    assert body["text"].startswith("quality check FAILED: balance v3")
    assert body["expectations"] == [
        {"store": "lake", "expectation": "amount is what the events fold to", "failed": 1}
    ]
    assert {"place": "lake", "key": "gone"} in body["keys"]


def test_rejected_alert_is_logged(webhook: Webhook, caplog: pytest.LogCaptureFixture) -> None:
    webhook.status = 500

    assert not alert(f"http://127.0.0.1:{webhook.server_port}/hook", FAILED)

    assert "quality check FAILED" in caplog.text
    assert "could not be delivered" in caplog.text


def test_unreachable_webhook_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert not alert("http://127.0.0.1:1/hook", FAILED)

    assert "quality check FAILED" in caplog.text


def test_without_a_webhook_the_failure_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert alert("", FAILED)

    assert "quality check FAILED" in caplog.text
