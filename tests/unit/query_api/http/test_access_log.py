"""A line of the access log names the path and a keyed hash of the browser, and neither its address nor its user agent."""

import json
import logging
from pathlib import Path

from include.observability.request_context import CURRENT, GIVEN_ID_KEY
from include.settings import Settings
from query_api.http.access_log import AGENT, AccessLogFormatter, log_options


def line(agent: str, address: str = "192.0.2.7", key: bytes = b"key") -> dict[str, object]:
    request = {"addr": address, "method": "GET", "path": "/api/a.b", "status": 200, AGENT: agent}
    record = logging.LogRecord("granian.access", logging.INFO, "", 0, "", None, None)
    record.args = request
    record.created = 1_772_438_400.174
    found: dict[str, object] = json.loads(AccessLogFormatter("node-1", key).format(record))
    return found


def test_a_request_is_an_action_of_a_browser() -> None:
    found = line("agent")

    assert found["@timestamp"] == "2026-03-02T08:00:00.174+00:00"
    assert (found["logger_name"], found["thread_name"]) == ("browser-actions", "node-1-http")
    assert (found["action"], found["message"], found["status"]) == ("/api/a.b", "GET /api/a.b", 200)


def test_a_browser_has_one_hash_and_nobody_knows_it_without_the_key() -> None:
    hashes = [
        line("a"),
        line("a"),
        line("b"),
        line("a", "192.0.2.8"),
        line("a", "2001:db8::7"),
        line("a", "2001:db8::8"),
        line("a", key=b"other"),
    ]

    first, same, *others = [found["browser_hash"] for found in hashes]
    assert first == same
    assert len({first, *others}) == 6
    assert not any("192.0.2" in json.dumps(found) for found in hashes)


def test_a_line_has_the_id_of_its_request() -> None:
    CURRENT.request = {GIVEN_ID_KEY: "one"}
    try:
        assert line("agent")["request_id"] == "one"
    finally:
        CURRENT.request = None


def test_there_is_no_access_log_unless_it_is_enabled(tmp_path: Path) -> None:
    assert "log_access" not in log_options(Settings.of(home=tmp_path))
    assert log_options(Settings.of(home=tmp_path, node_access_log=True))["log_access"] is True
