"""The status as a page and as JSON, of a node that reaches neither Kafka nor Airflow: it says so, and shows what it knows."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from include.settings import Settings
from tests.support.waiting import wait_until
from tests.unit.query_api.http.parcels import KEY, Node, parcels_settings
from tests.unit.query_api.status.test_newest_checks import summary

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    (tmp_path / "shared").mkdir()
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path / "shared"))
    return Node(parcels_settings(tmp_path).changed(airflow_port=1, registry_port=1))


def status(node: Node, query: str = "") -> dict[str, Any]:
    node.beat()
    answer = node.fast.get(f"/api/status{query}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = json.loads(answer.text)
    return found


def section(node: Node, name: str) -> dict[str, Any]:
    """Return a section once it has been read, with or without success."""

    def read() -> dict[str, Any] | None:
        found: dict[str, Any] = status(node, f"?sections={name}")["sections"][name]
        return found if found["data"] is not None or found["error"] else None

    wait_until(lambda: read() is not None, f"{name} is read")
    found = read()
    assert found is not None
    return found


def test_the_json_has_every_section_of_the_page(node: Node) -> None:
    found = status(node)

    assert found["node"] == node.settings.node.name
    assert list(found["sections"]) == [
        "services",
        "nodes",
        "versions",
        "rebuilds",
        "stream",
        "partitions",
        "lake",
        "quality",
        "history",
    ]
    assert all(set(part) == {"asOf", "ageS", "error", "data"} for part in found["sections"].values())


def test_only_the_sections_that_are_asked_for_are_read(node: Node) -> None:
    assert list(status(node, "?sections=nodes,lake")["sections"]) == ["nodes", "lake"]


def test_an_unknown_section_is_refused(node: Node) -> None:
    answer = node.fast.get("/api/status?sections=nodes,weather")

    assert answer.status_code == 400
    assert json.loads(answer.text)["type"] == "urn:foldlake:problem:unknown-section"
    assert "weather" in answer.text


def test_servers_that_do_not_answer_are_down_with_what_that_means(node: Node) -> None:
    down = {server["service"]: server for server in section(node, "services")["data"]}

    assert {name: server["isUp"] for name, server in down.items()} == {
        "Kafka": False,
        "Schema registry": False,
        "Airflow": False,
    }
    assert "does not answer" in down["Airflow"]["detail"]
    assert "Lookups and folds go on" in down["Airflow"]["effect"]


def test_servers_are_metrics_too(node: Node) -> None:
    section(node, "services")

    answer = node.fast.get("/metrics/status")

    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'foldlake_service_up{service="Airflow"} 0.0' in answer.text.splitlines()


def test_what_only_kafka_knows_says_so_at_once_and_the_rest_is_shown(node: Node) -> None:
    assert "Kafka does not answer" in section(node, "stream")["error"]
    assert "Kafka does not answer" in section(node, "rebuilds")["error"]
    assert section(node, "versions")["data"] == [
        {
            "readModel": "parcels",
            "version": 1,
            "stage": "live",
            "foldRevision": None,
            "reason": "",
            "createdAt": None,
            "liveSince": None,
            "keptUntil": None,
            "sourceTopic": "",
            "startOffsets": [],
        }
    ]
    (partition,) = section(node, "partitions")["data"]
    assert (partition["readModel"], partition["partition"], partition["isReady"]) == ("parcels", 0, True)
    tables = {table["table"]: table["exists"] for table in section(node, "lake")["data"]}
    assert tables == {"balance": False, "parcels": False}
    assert {entry["readModel"]: entry["lastCheck"] for entry in section(node, "quality")["data"]} == {
        "balance": None,
        "parcels": None,
    }


def test_the_last_check_names_its_engine_and_why(node: Node) -> None:
    summary(
        node.settings.home,
        "run",
        1000,
        read_model="parcels",
        engine="spark",
        engine_reason="a rule has a UDF",
    )

    checks = {entry["readModel"]: entry["lastCheck"] for entry in section(node, "quality")["data"]}

    assert (checks["parcels"]["engine"], checks["parcels"]["engineReason"]) == ("spark", "a rule has a UDF")


def test_the_page_is_self_contained_and_its_files_are_there(node: Node) -> None:
    page = node.fast.get("/", headers=BROWSER)

    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
    assert policy.endswith("frame-ancestors 'self' http://127.0.0.1:1 http://localhost:1")
    assert not re.search(r"\son\w+=|<script>|<style>|style=", page.text), "inline code"
    loaded = re.findall(r'(?:src|href)="(/(?:status|page)-files/[^"]+)"', page.text)
    assert len(loaded) >= 7
    for path in loaded:
        assert node.fast.get(path).status_code == 200, path
    modules = re.findall(r'from "\./([\w.-]+)"', node.fast.get("/status-files/status.js").text)
    assert {"lit-html.js", "plots.js", "lookup.js", "sections.js"} <= set(modules)
    assert all(node.fast.get(f"/status-files/{name}").status_code == 200 for name in modules)
    assert node.fast.get("/status-files/status.html").status_code == 404


def test_the_licenses_of_the_libraries_are_served_with_them(node: Node) -> None:
    assert "MIT License" in node.fast.get("/status-files/uPlot.LICENSE.txt").text
    assert "BSD 3-Clause" in node.fast.get("/status-files/lit-html.LICENSE.txt").text


@pytest.mark.parametrize(
    ("path", "status_code", "text"),
    [
        ("/api/parcels.getPlace?parcelId=nobody", 404, "unknown-key"),  # the fast path
        ("/api/read-models/parcels/records/nobody", 404, "unknown-key"),
        ("/api/read-models/nothing/records/x", 404, "unknown-model"),
        ("/map/parcels", 404, "not-found"),
        ("/no/such/page", 404, "not-found"),
    ],
)
def test_an_error_is_a_page_for_a_browser_and_json_for_a_program(
    node: Node, path: str, status_code: int, text: str
) -> None:
    node.beat()

    page = node.fast.get(path, headers=BROWSER)
    problem = node.fast.get(path)

    assert (page.status_code, problem.status_code) == (status_code, status_code)
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert f"<code>{text}</code>" in page.text
    assert problem.headers["Content-Type"] == "application/problem+json"
    assert json.loads(problem.text)["type"] == f"urn:foldlake:problem:{text}"
    assert page.headers.get("Foldlake-Reason") == problem.headers.get("Foldlake-Reason")
    assert page.headers["Vary"] == problem.headers["Vary"] == "Accept"


def test_an_answer_is_json_for_a_browser_too(node: Node) -> None:
    answer = node.fast.get(f"/api/read-models/parcels/records/{KEY}", headers=BROWSER)

    assert answer.headers["Content-Type"] == "application/json"


def test_settings_of_an_own_airflow_allow_it_to_show_the_page(tmp_path: Path) -> None:
    own: Settings = parcels_settings(tmp_path).changed(airflow_url="https://airflow.example/base")

    policy = Node(own).fast.get("/").headers["Content-Security-Policy"]

    assert policy.endswith("frame-ancestors 'self' https://airflow.example")
