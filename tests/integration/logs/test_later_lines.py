"""Much later lines: Spark forgets the windows that no event can reach; the access log of the nodes is read in, once.

These tests change the states that others compare with the oracle, and come after them.
"""

import json
from collections import Counter
from datetime import datetime, timedelta

import pytest
from confluent_kafka import Producer

from demo.log_tables import messages, record_count
from demo.logs.access_log import ship
from demo.logs.comparison import Check
from demo.logs.loading import TOPIC
from include.settings import Settings
from include.stream.query_reports import BatchProgress, read_queries
from query_api.http.access_log import access_log_path
from tests.integration.logs.test_branches import are_exact
from tests.support.http.local_http import HTTP
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(900)


@pytest.mark.endurance
def test_spark_forgets_the_windows_that_no_event_can_reach(settings: Settings, check: Check) -> None:
    wait_until(lambda: are_exact(settings, check), "all states are exact", timeout_s=300, poll_s=3)

    def batches() -> list[BatchProgress]:
        queries = read_queries(settings.kafka_connection)
        return [one.last_batch for one in queries if one.query == "browser-windows/v1"]

    wait_until(lambda: any(batch.state_rows > 15_000 for batch in batches()), "the states of all windows")
    producer = Producer({**settings.kafka_connection.client_settings, "partitioner": "murmur2_random"})
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
        return all(0 < batch.state_rows < 5_000 for batch in batches())

    wait_until(is_evicted, "the states of old windows are removed", timeout_s=300, poll_s=2)
    assert all(batch.dropped_events == 0 for batch in batches())


@pytest.mark.endurance
@pytest.mark.usefixtures("check")
def test_the_access_log_of_the_nodes_is_read_in_once(nodes: Settings) -> None:
    port = nodes.query_ports[0]
    log = access_log_path(nodes.changed(node_name="node-1"))

    def requests() -> Counter[str]:
        lines = log.read_text().splitlines() if log.exists() else []
        return Counter(json.loads(line)["browser_hash"] for line in lines)

    before = requests()
    agent = {"User-Agent": "a browser of this test"}
    for _ in range(3):
        assert HTTP.get(f"http://127.0.0.1:{port}/healthz", headers=agent).is_success

    def of_this_test() -> list[str]:
        # Others ask for the health of the node, too, and have done so before.
        return [
            browser
            for browser, number in (requests() - before).items()
            if number == 3 and not before[browser]
        ]

    wait_until(of_this_test, "the requests are logged")
    (browser,) = of_this_test()

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
