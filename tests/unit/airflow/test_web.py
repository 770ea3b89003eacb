"""A dropdown names the live version of each read model, as a node knows it; a run's note has the verdict on each read model."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

from include.airflow.client import MAX_NOTE_CHARACTERS
from include.airflow.web import PATH, read_model_labels, verdict_line, with_line
from include.quality.report import Outcome, Verdict
from include.settings import Settings

MODELS = [
    {
        "name": "balance",
        "live": 2,
        "versions": [{"version": 1, "stage": "previous"}, {"version": 2, "stage": "live"}],
    },
    {"name": "trend", "live": None, "versions": [{"version": 1, "stage": "candidate"}]},
]
URL = "http://127.0.0.1:5051/reports/quality/x.html"


@contextmanager
def node(status: int = 200) -> Iterator[int]:
    """Answer as a query node does; yields its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == PATH
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(MODELS).encode())

        def log_message(self, *_arguments: object) -> None:
            """Log nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def settings_with(*ports: int) -> Settings:
    # Nothing listens at the URL of the reports.
    return Settings.of(query_ports=ports, reports_url="http://127.0.0.1:3")


def test_a_label_has_the_live_version_first() -> None:
    with node() as port:
        found = read_model_labels(settings_with(1, port), ("balance", "trend", "unknown"))

    assert found == {
        "balance": "balance (v2 live, v1 previous)",
        "trend": "trend (no live version, v1 candidate)",
    }


def test_without_a_node_there_are_no_labels() -> None:
    assert read_model_labels(settings_with(1, 2), ("balance",)) == {}


def test_a_node_that_is_not_ready_is_passed_over() -> None:
    with node(status=503) as broken, node() as port:
        found = read_model_labels(settings_with(broken, port), ("balance",))

    assert found == {"balance": "balance (v2 live, v1 previous)"}


def test_a_verdict_is_a_line_with_the_report() -> None:
    assert verdict_line("balance", Verdict(Outcome.PASSED, ""), URL) == f"balance passed: [Report]({URL})"
    assert verdict_line("balance", Verdict(Outcome.FAILED, ""), URL) == f"balance **FAILED**: [Report]({URL})"
    assert verdict_line("balance", Verdict(Outcome.UNCHECKABLE, ""), URL) == "balance cannot be checked"


def test_a_later_verdict_on_a_read_model_replaces_the_earlier_one() -> None:
    note = with_line("", "balance", "balance **FAILED**: [Report](a)")
    note = with_line(note, "balance-limit", "balance-limit passed: [Report](b)")
    note = with_line(note, "balance", "balance passed: [Report](c)")

    assert note == "balance-limit passed: [Report](b)\n\nbalance passed: [Report](c)"


def test_a_note_that_is_too_long_loses_its_oldest_lines() -> None:
    note = ""
    for number in range(100):
        note = with_line(note, f"model-{number}", f"model-{number} passed: [Report]({URL})")

    assert len(note) <= MAX_NOTE_CHARACTERS
    assert note.endswith(f"model-99 passed: [Report]({URL})")
