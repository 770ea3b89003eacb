"""The reference page in a browser: it shows the node's operations, obeys the page's policy, and loads nothing from other hosts."""

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from tests.support.browser.chromium import chromium, missing_browser
from tests.support.node_stack import NodeStack
from tests.support.waiting import wait_until

LOADED = "return performance.getEntriesByType('resource').map(one => one.name)"

pytestmark = pytest.mark.skipif(bool(missing_browser()), reason=missing_browser() or "no reason")


def operations(browser: Chrome) -> list[str]:
    return [
        found.get_attribute("data-path") or ""
        for found in browser.find_elements(By.CSS_SELECTOR, ".opblock-summary-path")
    ]


def complaints(browser: Chrome) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]  # type: ignore[no-untyped-call]


def test_the_reference_shows_the_operations_of_the_node(nodes: NodeStack) -> None:
    node = f"http://127.0.0.1:{nodes.ports[0]}"
    with chromium() as browser:
        browser.get(f"{node}/docs")
        wait_until(lambda: "/api/customers.getBalance" in operations(browser), "the operations are shown")
        browser.find_element(By.CSS_SELECTOR, "[data-path='/api/customers.getBalance']").click()
        wait_until(
            lambda: "Foldlake-Position" in browser.find_element(By.ID, "reference").text,
            "the answer is described",
        )

        loaded: list[str] = browser.execute_script(LOADED)
        assert {"/api/balance.addFunds", "/api/partitions"} <= set(operations(browser))
        assert [url for url in loaded if not url.startswith((node, "data:"))] == []
        assert complaints(browser) == []
