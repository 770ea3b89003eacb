"""What docs/docker.md promises, on a real engine. The tests build on one another, in order."""

import logging
import re
import time
from decimal import Decimal
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.expected_conditions import presence_of_element_located as presence
from selenium.webdriver.support.wait import WebDriverWait

from include.airflow.client import AirflowApi
from include.airflow.names import REBUILD_DAG
from tests.support.browser.chromium import chromium, missing_browser
from tests.support.compose.balances import CUSTOMER, FOLD_S, add_funds, balance, is_folded
from tests.support.compose.project import OWN_MODEL, Project
from tests.support.waiting import wait_until

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.compose, pytest.mark.timeout(3600)]

NODE_IMAGE_MB, IMAGE_MB = 2_000, 3_500
REBUILD_S = 900.0
CHECK_S = 600.0
# A person reads the request first.
ANSWER_DELAY_S = 5.0


def test_up_returns_when_lookups_work(project: Project) -> None:
    assert project.unhealthy() == []
    project.foldlake("load")
    wait_until(lambda: is_folded(project, "7"), "both nodes have the loaded events", 240.0)

    add_funds(project, "5.25")

    assert balance(project, 1) == balance(project, 2) == Decimal("5.25")


def test_nodes_demand_a_key_and_reach_each_other_by_mutual_tls(project: Project) -> None:
    answered_by = set()
    for number in (1, 2):
        with project.node(number) as client:
            del client.headers["Authorization"]
            assert client.get("/api/status").status_code == HTTPStatus.UNAUTHORIZED
            assert client.get("/readyz").status_code == HTTPStatus.OK
        with project.node(1) as client:
            for household in range(1, 60):
                answer = client.get("/api/customers.getBalance", params={"customerId": str(household)})
                answered_by.add(answer.headers.get("Foldlake-Node"))

    assert {"node-1", "node-2"} <= answered_by
    keys = "/run/foldlake-peers/ /run/foldlake/ -name ca-key.pem"
    for service in ("query-node-1", "stream-supervisor"):
        found = project.compose("exec", "--no-TTY", service, "sh", "-c", f"find {keys} 2> /dev/null; true")
        assert found.strip() == ""


def test_the_command_line_works_in_the_supervisors_container(project: Project) -> None:
    wait_until(
        lambda: "state running" in " ".join(project.foldlake("status").split()), "the stream runs", FOLD_S
    )
    assert "balance" in project.foldlake("versions")


def test_a_read_model_in_a_folder_of_the_host_is_served(project: Project) -> None:
    assert re.search(rf"{OWN_MODEL} +1 +live", project.foldlake("versions"))
    for number in (1, 2):
        with project.node(number) as client:
            assert client.get(f"/api/read-models/{OWN_MODEL}/records").json()["records"] == []


def test_images_are_small(project: Project) -> None:
    sizes = {
        name: int(project.engine.docker("image", "inspect", "--format", "{{.Size}}", f"{name}:local")) / 1e6
        for name in ("foldlake-node", "foldlake")
    }
    log.info("megabytes: %s", sizes)

    assert sizes["foldlake-node"] < NODE_IMAGE_MB
    assert sizes["foldlake"] < IMAGE_MB


def test_a_change_of_code_repeats_no_download(project: Project) -> None:
    module = project.folder / "include" / "errors.py"
    module.write_text(module.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")

    built = project.build("query-node-1")

    downloads = re.findall(r"^(#\d+) \[query-node-1 node-tools [^]]*\] RUN ", built, re.MULTILINE)
    copies = re.findall(r"^(#\d+) \[query-node-1 node [^]]*\] COPY .* include ", built, re.MULTILINE)
    assert [step for step in downloads if f"{step} CACHED" not in built] == [] != downloads
    assert [step for step in copies if f"{step} CACHED" in built] == [] != copies


def status_sections(project: Project) -> dict[str, Any]:
    with project.node(2) as client:
        found: dict[str, Any] = client.get("/api/status").json()["sections"]
    return found


def last_check(project: Project) -> dict[str, Any]:
    """Return the newest check of the balance; empty before the first."""
    checks = status_sections(project)["quality"]["data"] or []
    return next((one["lastCheck"] for one in checks if one["readModel"] == "balance"), None) or {}


def test_the_lake_is_compacted_and_checked(project: Project) -> None:
    project.foldlake("compact")
    wait_until(lambda: last_check(project), "the check after the first compaction has ended", CHECK_S, 2.0)

    sections = status_sections(project)
    assert {name: found["error"] for name, found in sections.items() if found["error"]} == {}
    assert [one["service"] for one in sections["services"]["data"] if not one["isUp"]] == []
    check = last_check(project)
    assert check["passed"]
    for number in (1, 2):
        with project.node(number) as client:
            assert client.get(check["report"]).status_code == HTTPStatus.OK


def test_a_rebuild_is_approved_in_airflow_and_promoted(project: Project) -> None:
    api = AirflowApi(
        f"http://127.0.0.1:{project.ports['FOLDLAKE_AIRFLOW_PORT']}", "admin", project.airflow_password()
    )
    form = {"read_model": "balance", "reason": "compose", "approve": True, "grace_hours": 1}
    run_id = api.trigger(REBUILD_DAG, form)

    def states() -> dict[str, str | None]:
        return {task.task_id: task.state for task in api.tasks(REBUILD_DAG, run_id)}

    ended = ("success", "failed")
    wait_until(
        lambda: states()["approve"] == "awaiting_input" or api.run_state(REBUILD_DAG, run_id) in ended,
        "a person is needed",
        REBUILD_S,
        2.0,
    )
    assert states()["approve"] == "awaiting_input", states()
    before = balance(project, 1)
    time.sleep(ANSWER_DELAY_S)
    api.answer(REBUILD_DAG, run_id, "approve", "Approve")
    wait_until(lambda: api.run_state(REBUILD_DAG, run_id) in ended, "the run ends", REBUILD_S, 2.0)

    assert api.run_state(REBUILD_DAG, run_id) == "success", states()
    assert re.search(r"balance +2 +live", project.foldlake("versions"))
    for number in (1, 2):
        with project.node(number) as client:
            answer = client.get(f"/api/read-models/balance/records/{CUSTOMER}").json()
        assert answer["version"] == 2
        assert balance(project, number) == before


@pytest.mark.skipif(bool(missing_browser()), reason=f"no browser: {missing_browser()}")
def test_airflow_shows_the_status_page_in_a_browser(project: Project, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{project.ports['FOLDLAKE_AIRFLOW_PORT']}"
    with chromium() as browser:
        wait = WebDriverWait(browser, 60)
        # The frame has a page of the node, which shows no sign-in page in a frame.
        browser.get(f"http://127.0.0.1:{project.ports['QUERY_NODE_1_PORT']}/")
        wait.until(presence((By.NAME, "credential"))).send_keys(project.key, Keys.ENTER)
        wait.until(lambda _: "Sign in" not in browser.title)
        browser.get(f"{url}/plugin/foldlake")
        wait.until(presence((By.NAME, "username"))).send_keys("admin")
        browser.find_element(By.NAME, "password").send_keys(project.airflow_password(), Keys.ENTER)
        wait.until(lambda _: "login" not in browser.current_url)
        browser.get(f"{url}/plugin/foldlake")
        browser.switch_to.frame(wait.until(presence((By.TAG_NAME, "iframe"))))
        wait.until(lambda _: "Reading the status" not in browser.find_element(By.TAG_NAME, "body").text)
        browser.save_screenshot(str(tmp_path / "status-in-airflow.png"))
        log.info("picture: %s", tmp_path / "status-in-airflow.png")

        assert "is down" not in browser.find_element(By.TAG_NAME, "body").text
