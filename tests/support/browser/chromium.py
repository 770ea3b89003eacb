"""Headless Chromium, driven by Selenium, from the machine's packages `chromium` and `chromium-driver`."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DRIVER = "chromedriver"
LOAD_TIMEOUT_S = 120.0


def missing_browser() -> str:
    """Return what this machine lacks for `chromium`; empty if nothing."""
    if not any(map(shutil.which, BROWSERS)):
        return f"none of {', '.join(BROWSERS)} is installed"
    return "" if shutil.which(DRIVER) else f"{DRIVER} is not installed"


@contextmanager
def chromium(width: int = 1280, height: int = 800, *, is_dark: bool = False) -> Iterator[Chrome]:
    """Run a browser with a new profile during a block, with a window of this size in pixels."""
    options = ChromeOptions()
    options.binary_location = next(found for name in BROWSERS if (found := shutil.which(name)))
    # Containers have no user namespaces for the sandbox, and a small /dev/shm.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-proxy-server"):
        options.add_argument(argument)
    options.add_argument(f"--window-size={width},{height}")
    if is_dark:
        options.add_argument("--force-dark-mode")
        options.add_argument("--blink-settings=preferredColorScheme=0")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options, Service(shutil.which(DRIVER)))
    try:
        driver.set_page_load_timeout(LOAD_TIMEOUT_S)
        yield driver
    finally:
        driver.quit()
