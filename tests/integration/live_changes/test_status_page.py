"""The status page in a browser: it shows nodes, versions, partitions and the last hour, looks keys up, and follows what changes."""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import partial

import pytest
from confluent_kafka import Producer
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By

from query_api.lookup.routing import partition_of
from tests.support.browser.chromium import chromium, missing_browser
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until

needs_browser = pytest.mark.skipif(bool(missing_browser()), reason=f"no browser: {missing_browser()}")
PHONE_WIDTH = 360
CUSTOMER = "status page/é"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    with chromium() as running:
        yield running


@pytest.fixture
def page(nodes: NodeStack, browser: Chrome) -> Chrome:
    """The page of the first node, once it shows something."""
    if CUSTOMER not in nodes.expected:
        nodes.put(CUSTOMER, Decimal("12.30"))
        nodes.writer.flush()
        wait_until(
            lambda: all(nodes.balance(port, CUSTOMER).is_success for port in nodes.ports), "it is stored"
        )
    browser.get(f"http://127.0.0.1:{nodes.ports[0]}/")
    wait_until(
        lambda: (
            "node-2" in text(browser, "nodes")
            and "live" in text(browser, "versions")
            and "balance" in text(browser, "stream")
        ),
        "it is read",
    )
    return browser


def text(browser: Chrome, element_id: str) -> str:
    found: str = browser.find_element(By.ID, element_id).text
    return found


def severe(browser: Chrome) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]  # type: ignore[no-untyped-call]


def run(browser: Chrome, script: str) -> object:
    found: object = browser.execute_script(script)
    return found


@needs_browser
def test_the_page_shows_the_nodes_their_partitions_and_what_is_wrong(page: Chrome) -> None:
    assert re.search(r"node-1 \(this one\)\s+ready\s+\d+ partitions?", text(page, "nodes"))
    assert re.search(r"balance\s+1\s+live", text(page, "versions"))
    wait_until(lambda: "all ready" in text(page, "partitions"), "the partitions are read")
    page.find_element(By.CSS_SELECTOR, "#partitions summary").click()
    owners = re.findall(r"^\d+ (node-\d) (node-\d) ready", text(page, "partitions"), re.MULTILINE)
    assert len(owners) == 4
    assert all({owner, standby} == {"node-1", "node-2"} for owner, standby in owners)

    row = page.find_element(By.CSS_SELECTOR, "#stream .flow summary")
    shown = (
        r"balance read model source balance events behind [\d,]+ latency .+ dead letters 0 state not running"
    )
    assert re.fullmatch(shown, " ".join(row.text.split()))
    assert "balance.dead-letter" not in text(page, "stream")
    row.send_keys(Keys.ENTER)
    assert re.search(r"balance/v1\s+v1, live", text(page, "stream"))
    assert "balance.dead-letter" in text(page, "stream")

    # This stack has neither Airflow nor a stream driver.
    wait_until(lambda: "Airflow is down" in text(page, "problems"), "Airflow is missed")
    wait_until(lambda: "The stream is not running" in text(page, "problems"), "the stream is missed")
    assert re.fullmatch(r"\d+ things need attention", text(page, "overall"))
    assert str(page.title).startswith("(")
    assert severe(page) == []
    hosts = run(page, "return performance.getEntriesByType('resource').map(e => new URL(e.name).origin)")
    assert isinstance(hosts, list)
    assert set(hosts) == {run(page, "return location.origin")}


@needs_browser
def test_a_key_is_looked_up_with_who_answered_how_old_it_is_and_how_it_came_to_be(page: Chrome) -> None:
    form = page.find_element(By.ID, "lookup")
    form.find_element(By.NAME, "model").send_keys("balance")
    form.find_element(By.NAME, "key").send_keys(CUSTOMER + Keys.ENTER)
    wait_until(lambda: "Answered by" in text(page, "answer"), "the key is found")

    found = text(page, "answer")
    assert "12.30" in found, "an amount keeps its decimals"
    assert re.search(r"node-\d, owner of the key's partition", found)
    assert re.search(r"at most [\d,]+ ms", found)
    assert "v1 of balance" in found
    assert "1 event; the newest is at partition" in found
    explain = page.find_element(By.LINK_TEXT, "Explain").get_attribute("href")
    assert "/explain?readModel=balance&key=status+page%2F%C3%A9&version=1" in str(explain)

    key = form.find_element(By.NAME, "key")
    key.clear()
    key.send_keys("nobody" + Keys.ENTER)
    wait_until(lambda: "unknown key" in text(page, "answer"), "the key is not found")


@needs_browser
def test_an_update_leaves_focus_input_and_opened_details_as_they_are(page: Chrome) -> None:
    page.find_element(By.CSS_SELECTOR, "#partitions summary").click()
    page.find_element(By.CSS_SELECTOR, "#stream summary").click()
    key = page.find_element(By.CSS_SELECTOR, "#lookup [name=key]")
    key.send_keys("half a k")
    before = text(page, "updated")
    wait_until(lambda: text(page, "updated") not in {before, ""}, "the page is updated")

    assert page.switch_to.active_element == key
    assert key.get_attribute("value") == "half a k"
    assert run(page, "return document.querySelector('#partitions details').open") is True
    assert run(page, "return document.querySelector('#stream details').open") is True

    pause = page.find_element(By.ID, "pause")
    pause.send_keys(Keys.SPACE)
    assert (pause.get_attribute("aria-pressed"), text(page, "updated")) == ("true", "updates are paused")


@needs_browser
def test_every_table_and_field_has_a_name_for_screen_readers(page: Chrome) -> None:
    wait_until(lambda: "balance" in text(page, "lake"), "the last section is read")
    unnamed = run(
        page,
        """return [
          ...[...document.querySelectorAll('#main table:not(.u-legend)')].filter(t => !t.caption?.textContent),
          ...[...document.querySelectorAll('#main table:not(.u-legend) th')].filter(h => !h.scope || !h.textContent.trim()),
          ...[...document.querySelectorAll('input, select')].filter(f => !f.labels.length),
          ...[...document.querySelectorAll('section')].filter(s => !document.getElementById(s.getAttribute('aria-labelledby'))),
          ...[...document.querySelectorAll('a, button')].filter(a => !a.textContent.trim()),
        ].map(e => e.outerHTML.slice(0, 100))""",
    )

    assert unnamed == []
    assert run(page, "return document.documentElement.lang") == "en"
    live = run(page, "return [...document.querySelectorAll('[aria-live], [role=status]')].map(e => e.id)")
    assert live == ["overall", "answer"], "only what a person waits for is announced"


@needs_browser
def test_the_page_fits_a_phone_in_the_dark(nodes: NodeStack) -> None:
    with chromium(PHONE_WIDTH, 800, is_dark=True) as phone:
        # A window cannot be this narrow.
        phone.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": PHONE_WIDTH, "height": 800, "deviceScaleFactor": 2, "mobile": True},
        )
        phone.get(f"http://127.0.0.1:{nodes.ports[1]}/")
        wait_until(lambda: "node-1" in text(phone, "nodes"), "it is read")

        assert run(phone, "return document.documentElement.scrollWidth") == PHONE_WIDTH
        colour = str(run(phone, "return getComputedStyle(document.body).backgroundColor"))
        assert max(map(int, re.findall(r"\d+", colour))) < 64
        assert severe(phone) == []


@needs_browser
def test_an_address_that_does_not_exist_is_answered_by_a_page(nodes: NodeStack, browser: Chrome) -> None:
    browser.get(f"http://127.0.0.1:{nodes.ports[0]}/api/read-models/balance/records/nobody")

    assert browser.find_element(By.TAG_NAME, "h1").text == "404 unknown key"
    browser.find_element(By.LINK_TEXT, "Status of the nodes").click()
    assert browser.find_element(By.ID, "overall").is_displayed()


def test_all_nodes_know_the_same_and_measure_the_last_hour(nodes: NodeStack) -> None:
    first, second = (nodes.get(port, "/api/status").json() for port in nodes.ports)
    assert (first["node"], second["node"]) == ("node-1", "node-2")
    for name in ("versions", "lake", "quality"):
        wait_until(partial(_are_equal, nodes, name), f"both show the same {name}")

    _append_events(nodes, 50)
    customer = "measured"
    source = partition_of(customer.encode(), nodes.settings.topics.partitions)

    def is_measured() -> bool:
        nodes.put(customer, Decimal("1.00"))
        nodes.writer.flush()
        return all(_latencies(nodes, port) for port in nodes.ports)

    wait_until(is_measured, f"both have measured the latency of an event of partition {source}", 40)
    for port in nodes.ports:
        history = nodes.get(port, "/api/status?sections=history").json()["sections"]["history"]["data"]
        samples = history["models"]["balance"]
        assert len({len(column) for column in samples.values()}) == 1
        assert max(_latencies(nodes, port)) < 60_000
        assert samples["eventsBehind"][-1] is not None


def _are_equal(nodes: NodeStack, name: str) -> bool:
    shown = [
        nodes.get(port, f"/api/status?sections={name}").json()["sections"][name]["data"]
        for port in nodes.ports
    ]
    return shown[0] is not None and shown[0] == shown[1]


def _append_events(nodes: NodeStack, count: int) -> None:
    """Append records to every partition of the source, so that the offsets in the states are those of records."""
    producer = Producer(nodes.settings.kafka_connection.client_settings)
    for partition in range(nodes.settings.topics.partitions):
        for _ in range(count):
            producer.produce(nodes.writer.model.source_topic, b"event", b"key", partition=partition)
    assert producer.flush(30) == 0


def _latencies(nodes: NodeStack, port: int) -> list[int]:
    history = nodes.get(port, "/api/status?sections=history").json()["sections"]["history"]["data"]
    samples = (history or {"models": {}})["models"].get("balance", {"latencyMs": []})
    return [latency for latency in samples["latencyMs"] if latency is not None]
