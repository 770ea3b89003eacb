"""Airflow's web page in a browser: the form of a rebuild, its run, and its approval."""

from urllib.parse import quote

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.expected_conditions import presence_of_element_located
from selenium.webdriver.support.ui import WebDriverWait

from include.airflow.client import USER, password
from include.airflow.names import REBUILD_DAG
from include.settings import Settings

TIMEOUT_S = 60


class AirflowPages:
    """Pages of a stack's Airflow in a browser that is logged in."""

    def __init__(self, browser: Chrome, settings: Settings) -> None:
        self._browser = browser
        self._url = settings.airflow.base_url
        self._wait = WebDriverWait(browser, TIMEOUT_S)
        browser.get(self._url)
        self._found(By.NAME, "username").send_keys(USER)
        self._found(By.NAME, "password").send_keys(password(settings.home, settings.airflow), Keys.ENTER)
        self._wait.until(lambda _: "login" not in browser.current_url)

    def open_form(self, reason: str) -> None:
        """Open the form of a rebuild, and enter a reason."""
        self._browser.get(f"{self._url}/dags/{REBUILD_DAG}")
        self._button("Trigger").click()
        self._found(By.NAME, "element_reason").send_keys(reason)
        self._show("Run Parameters")

    def open_approval(self, run_id: str) -> None:
        """Open the approval that a run waits for."""
        path = f"/dags/{REBUILD_DAG}/runs/{quote(run_id)}/tasks/approve/required_actions"
        self._browser.get(self._url + path)
        self._button("Approve")

    def approve(self) -> None:
        """Press the button of the open approval."""
        self._button("Approve").click()

    def show_approve_button(self) -> None:
        """Scroll to the buttons of the open approval."""
        self._scroll_to(self._button("Approve"))

    def open_run(self, run_id: str) -> None:
        """Open the page of a run."""
        self._browser.get(f"{self._url}/dags/{REBUILD_DAG}/runs/{quote(run_id)}")
        self._show("promote_lake")

    def _found(self, by: str, value: str) -> WebElement:
        return self._wait.until(presence_of_element_located((by, value)))

    def _button(self, text: str) -> WebElement:
        path = f"//button[normalize-space()={text!r}]"
        self._wait.until(
            lambda browser: any(one.is_displayed() for one in browser.find_elements(By.XPATH, path))
        )
        return next(one for one in self._browser.find_elements(By.XPATH, path) if one.is_displayed())

    def _show(self, text: str) -> None:
        self._scroll_to(self._found(By.XPATH, f"//*[text()={text!r}]"))

    def _scroll_to(self, element: WebElement) -> None:
        self._browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
