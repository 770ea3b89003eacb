"""A window lookup returns the windows of one version, with the version and the age of the answer."""

import json
import time
from pathlib import Path

import pytest

from include.settings import Settings
from query_api.lookup import lookups
from tests.unit.query_api.http.stops import Answer, StopsNode, other_node, stops_settings, window_keys

WINDOWS = 40
PATH = "/api/stops.getWindows?stopId=a&from=1970-01-01T00:00:00Z&to=1970-01-01T00:01:20Z"
AS_OF = "2026-03-02T08:00:00.000+00:00"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return stops_settings(tmp_path)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other nodes may answer late: the tests of the other worker keep the cores busy."""
    monkeypatch.setattr(lookups, "ANSWER_TIMEOUT_S", 60.0)


def state(version: int) -> dict[str, float]:
    return {"n": version, "lat": 0.0, "lon": 0.0}


def test_a_promotion_meanwhile_does_not_mix_two_versions(settings: Settings) -> None:
    asked: list[str] = []

    def answer(target: str) -> Answer:
        if not asked:
            node.publish(live=2, versions=(1, 2))
        asked.append(target)
        time.sleep(0.1)  # longer than the state of the node may be old
        version = 1 if target.endswith("?version=1") else 2
        return 200, {}, json.dumps({"state": state(version), "event_count": 1})

    with other_node(answer) as url:
        node = StopsNode(settings, url)
        for version in (1, 2):
            node.store("stops", version, dict.fromkeys(window_keys("a", WINDOWS, 0), state(version)))
        node.publish(live=1, versions=(1, 2))

        mixed = node.client.get(PATH)
        after = node.client.get(PATH)

    assert 8 < len(window_keys("a", WINDOWS, 1)) < WINDOWS
    assert (json.loads(mixed.text), mixed.headers["Foldlake-Version"]) == (
        {"windows": [{"n": 1}] * WINDOWS},
        "1",
    )
    assert (json.loads(after.text), after.headers["Foldlake-Version"]) == (
        {"windows": [{"n": 2}] * WINDOWS},
        "2",
    )


def test_the_age_is_that_of_the_oldest_window(settings: Settings) -> None:
    headers = {"Foldlake-As-Of": AS_OF, "Foldlake-Lag-Ms": "4000"}

    def answer(_: str) -> Answer:
        return 404, {**headers, "Foldlake-Reason": "unknown-key"}, "{}"

    with other_node(answer) as url:
        node = StopsNode(settings, url)
        node.store("stops", 1, dict.fromkeys(window_keys("a", WINDOWS, 0), state(1)))
        node.publish()

        found = node.client.get(PATH)

    assert len(json.loads(found.text)["windows"]) == len(window_keys("a", WINDOWS, 0))
    assert {name: found.headers[name] for name in headers} == headers
    assert found.headers["Foldlake-Node"] == settings.node.name


def test_an_answer_without_windows_has_an_age_too(settings: Settings) -> None:
    node = StopsNode(settings, confirmed_s_ago={"stops": 3.0})
    node.store("stops", 1, {})
    node.publish()

    empty = node.client.get(PATH)
    no_range = node.client.get(PATH.replace("01:20", "00:00"))

    assert (empty.text, no_range.text) == ('{"windows":[]}', '{"windows":[]}')
    assert int(empty.headers["Foldlake-Lag-Ms"]) >= 3000
    assert no_range.headers["Foldlake-Lag-Ms"] == "0"


def test_a_window_that_no_node_can_read_now_is_not_left_out(settings: Settings) -> None:
    with other_node(lambda _: (404, {"Foldlake-Reason": "unknown-model"}, "{}")) as url:
        node = StopsNode(settings, url)
        node.store("stops", 1, {})
        node.publish()

        refused = node.client.get(PATH)

    assert (refused.status_code, refused.headers["Foldlake-Reason"]) == (503, "not-ready")


def test_the_array_itself_is_deprecated(settings: Settings) -> None:
    module = settings.declaration_folders[-1] / "stops.py"
    module.write_text(module.read_text().replace('WINDOW, ("n",)),)', 'WINDOW, ("n",), as_array=True),)'))
    node = StopsNode(settings)
    node.store("stops", 1, {"a/1970-01-01T00:00:00Z": state(1)})
    node.publish()

    document = json.loads(node.client.get("/openapi.json").text)

    assert json.loads(node.client.get(PATH).text) == [{"n": 1}]
    described = document["paths"]["/api/stops.getWindows"]["get"]
    assert described["deprecated"] is True
    assert "`windows`" in described["description"]
