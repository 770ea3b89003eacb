"""A browser shows the items of a read model with a location on a map, moves them as they move, and resumes by itself."""

from collections.abc import Callable, Iterator

import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By

from tests.integration.live_changes.buoys import MODEL, Buoys
from tests.support.browser.chromium import chromium, missing_browser
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(bool(missing_browser()), reason=f"no browser: {missing_browser()}")
MAP = f"/map/{MODEL}"


@pytest.fixture
def browser() -> Iterator[Chrome]:
    with chromium() as running:
        yield running


def text(browser: Chrome, element_id: str) -> Callable[[], str]:
    return lambda: browser.find_element(By.ID, element_id).text


def wait_for_text(browser: Chrome, element_id: str, expected: str) -> None:
    read = text(browser, element_id)
    try:
        wait_until(lambda: expected in read(), f"{element_id} shows {expected}")
    except AssertionError as error:
        raise AssertionError(f"{element_id} shows {read()!r}, not {expected!r}") from error


def test_the_map_follows_the_items_and_resumes_after_an_interruption(
    nodes: NodeStack, buoys: Buoys, browser: Chrome
) -> None:
    for name in list(buoys.present):
        buoys.remove(name)
    for number in range(3):
        buoys.put(f"map-{number}", 54.0 + number / 10, 10.0, label="<b>drifting</b>")
    buoys.flush()
    wait_until(lambda: buoys.are_listed(nodes), "all nodes list them")

    browser.get(f"http://127.0.0.1:{nodes.ports[0]}{MAP}")
    wait_for_text(browser, "connection", "live")
    wait_for_text(browser, "count", "3")
    assert text(browser, "age")() == "none yet"

    buoys.put("map-3", 54.3, 10.0)
    buoys.remove("map-1")
    buoys.remove("map-2")
    buoys.remove("map-3")
    buoys.put("map-0", 54.7, 10.5, label="<b>anchored</b>")
    buoys.flush()
    wait_for_text(browser, "count", "1")
    wait_for_text(browser, "age", "s ago")

    # A single item is in the middle, once the map shows all items again.
    browser.find_element(By.ID, "fit").click()
    wait_until(lambda: _record_after_click(browser) == "map-0", "a click on the item shows its record")
    wait_for_text(browser, "fields", "<b>anchored</b>")
    wait_for_text(browser, "fields", "54.7")
    assert _errors(browser) == []

    nodes.kill("node-1-http")
    buoys.put("map-0", 54.8, 10.5, label="after the interruption")
    buoys.put("map-4", 54.8, 10.5)
    buoys.flush()
    wait_for_text(browser, "connection", "live")
    wait_for_text(browser, "count", "2")
    wait_for_text(browser, "fields", "after the interruption")
    nodes.settled()


def _record_after_click(browser: Chrome) -> str:
    canvas = browser.find_element(By.ID, "map")
    ActionChains(browser).move_to_element(canvas).click().perform()
    return browser.find_element(By.ID, "key").text


def _errors(browser: Chrome) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]  # type: ignore[no-untyped-call]


def test_the_page_is_linked_and_loads_nothing_from_elsewhere(nodes: NodeStack) -> None:
    assert f'<a href="{MAP}">' in nodes.get(nodes.ports[1], "/").text

    page = nodes.get(nodes.ports[1], MAP)
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'")
    assert "http://" not in page.text
    for name in ("map.js", "map.css"):
        file = nodes.get(nodes.ports[1], f"/map-files/{name}")
        assert file.status_code == 200
        assert file.headers["X-Content-Type-Options"] == "nosniff"
    assert nodes.get(nodes.ports[1], "/map-files/map.html").status_code == 404
    assert nodes.get(nodes.ports[1], "/map/balance").status_code == 404
