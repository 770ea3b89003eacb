"""Windows are looked up by browser and time range on any node; expired ones leave Spark's state."""

import json
from datetime import datetime, timedelta

import httpx
import pytest
from confluent_kafka import Producer

from demo.log_tables import messages, record_count
from demo.logs.access_log import ship
from demo.logs.comparison import Check
from demo.logs.lines import bots
from demo.logs.loading import TOPIC
from include.settings import Settings
from include.stream.query_reports import read_queries
from query_api.http.access_log import access_log_path
from tests.integration.logs.test_branches import are_exact
from tests.support.http.local_http import HTTP
from tests.support.unsupervised_driver import SharedDriver
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(900)
PATH = "/api/browsers.getWindows"
BROWSER = bots()[2]


def windows(port: int, **query: str) -> httpx.Response:
    return HTTP.get(f"http://127.0.0.1:{port}{PATH}", params=query)


def test_every_node_answers_the_windows_of_a_time_range(
    nodes: Settings, driver: SharedDriver, check: Check
) -> None:
    driver.ensure_running()
    wait_until(lambda: are_exact(nodes, check), "all states are exact", timeout_s=300, poll_s=1)
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
            lambda port=port: windows(port, **query).json() == expected,  # type: ignore[misc]
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


def test_spark_forgets_the_windows_that_no_event_can_reach(settings: Settings, driver: SharedDriver) -> None:
    driver.ensure_running()

    def batches() -> list[dict[str, int]]:
        queries = read_queries(settings.kafka.bootstrap_servers)
        return [one.last_batch for one in queries if one.query == "browser-windows/v1"]

    wait_until(lambda: any(batch["state_rows"] > 20_000 for batch in batches()), "the states of all windows")
    producer = Producer(
        {"bootstrap.servers": settings.kafka.bootstrap_servers, "partitioner": "murmur2_random"}
    )
    # Much later: the states of all earlier windows are behind the watermark. Each line moves the watermark for the next batch.
    later = datetime.fromisoformat("2026-03-02T20:00:00+00:00")

    def append_line(number: int) -> None:
        time = later + timedelta(seconds=number)
        record = {"@timestamp": time.isoformat(), "logger_name": "browser-actions", "thread_name": "late"}
        line = json.dumps(record | {"browser_hash": "later", "action": "home"})
        producer.produce(TOPIC, line, "late", timestamp=round(time.timestamp() * 1000))
        assert producer.flush(30) == 0

    lines = iter(range(10_000))

    def is_evicted() -> bool:
        append_line(next(lines))
        return all(0 < batch["state_rows"] < 5_000 for batch in batches())

    wait_until(is_evicted, "the states of old windows are removed", timeout_s=300, poll_s=2)
    assert all(batch["dropped_events"] == 0 for batch in batches())


def test_the_access_log_of_the_nodes_is_read_in_once(nodes: Settings, driver: SharedDriver) -> None:
    driver.ensure_running()
    port = nodes.query_ports[0]
    agent = {"User-Agent": "a browser of this test"}
    for _ in range(3):
        assert HTTP.get(f"http://127.0.0.1:{port}/healthz", headers=agent).is_success
    log = access_log_path(nodes.changed(node_name="node-1"))
    wait_until(lambda: log.read_text().count('"/healthz"') >= 3, "the requests are logged")
    # The newest lines of the health check: those of this browser.
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    (browser,) = {line["browser_hash"] for line in lines if line["action"] == "/healthz"} & {
        line["browser_hash"] for line in [one for one in lines if one["action"] == "/healthz"][-3:]
    }

    assert ship(nodes) > 0
    shipped = record_count(nodes, TOPIC)

    def actions() -> object:
        query = {"browserHash": browser}
        return HTTP.get(f"http://127.0.0.1:{port}/api/browsers.getActions", params=query).json()["actions"]

    wait_until(lambda: actions() == 3, "the actions of the browser", timeout_s=120)
    assert "127.0.0.1" not in log.read_text()
    ship(nodes)
    mine = [line for line in messages(nodes, TOPIC) if browser.encode() in (line.value() or b"")]
    assert len(mine) == 3
    assert record_count(nodes, TOPIC) >= shipped
