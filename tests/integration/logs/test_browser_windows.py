"""Windows are looked up by browser and time range on any node."""

from datetime import datetime, timedelta

import httpx
import pytest

from demo.logs.comparison import Check
from demo.logs.lines import bots
from include.settings import Settings
from tests.integration.logs.test_branches import are_exact
from tests.support.http.local_http import HTTP
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.endurance, pytest.mark.timeout(900)]
PATH = "/api/browsers.getWindows"
BROWSER = bots()[2]


def windows(port: int, **query: str) -> httpx.Response:
    return HTTP.get(f"http://127.0.0.1:{port}{PATH}", params=query)


def test_every_node_answers_the_windows_of_a_time_range(nodes: Settings, check: Check) -> None:
    wait_until(lambda: are_exact(nodes, check), "all states are exact", timeout_s=300, poll_s=3)
    (last,) = check.connection.execute("select max(window_end) from expected_windows").fetchone() or (None,)
    assert isinstance(last, datetime)
    since, until = last - timedelta(seconds=60), last - timedelta(seconds=1)
    rows = check.connection.execute(
        "select window_start, actions from expected_windows where key like ? and window_start >= ? and window_start < ? order by all",
        [f"{BROWSER}/%", since, until],
    ).fetchall()
    expected = [
        {
            "window_start": start.isoformat(),
            "window_end": (start + timedelta(seconds=5)).isoformat(),
            "actions": actions,
        }
        for start, actions in rows
    ]
    query = {"browserHash": BROWSER, "from": since.isoformat(), "to": until.isoformat()}

    assert len(expected) > 5
    for port in nodes.query_ports:
        wait_until(
            lambda port=port: windows(port, **query).json() == {"windows": expected},  # type: ignore[misc]
            "the windows of a browser",
            timeout_s=120,
        )


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ({"from": "2026-03-02T08:00:00Z", "to": "2026-03-02T08:00:10Z"}, "invalid-item"),
        ({"browserHash": "a", "from": "yesterday", "to": "2026-03-02T08:00:10Z"}, "invalid-from"),
        ({"browserHash": "a", "from": "2026-03-02T08:00:00Z"}, "invalid-to"),
        (
            {"browserHash": "a", "from": "2026-03-02T08:00:00Z", "to": "2026-03-03T08:00:00Z"},
            "range-too-long",
        ),
    ],
)
def test_a_range_that_is_not_valid_is_refused(nodes: Settings, query: dict[str, str], problem: str) -> None:
    answer = windows(nodes.query_ports[0], **query)

    assert (answer.status_code, answer.json()["type"]) == (400, f"urn:foldlake:problem:{problem}")
