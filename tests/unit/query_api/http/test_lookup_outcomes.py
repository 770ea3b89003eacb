"""`foldlake_lookups_total` counts each lookup once, with the outcome that the client sees."""

from pathlib import Path

import pytest

from include.settings import Settings
from query_api.metrics.node_metrics import LOOKUPS
from tests.unit.query_api.http.stops import StopsNode, other_node, stops_settings, window_keys

# The first is of partition 0, which the node has, the second of partition 1.
OWN, OTHER = window_keys("a", 40, 0)[0], window_keys("a", 40, 1)[0]
PATHS = ("/api/stops.get?stopId={}", "/api/stops.get?stopId={}&minOffset=0")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return stops_settings(tmp_path)


def counts() -> dict[tuple[str, str], float]:
    return {
        (sample.labels["outcome"], sample.labels["served_by"]): sample.value
        for metric in LOOKUPS.collect()
        for sample in metric.samples
        if sample.name.endswith("_total") and sample.value
    }


def counted(node: StopsNode, path: str, headers: dict[str, str]) -> dict[tuple[str, str], float]:
    """Return what one request has counted."""
    before = counts()
    node.client.get(path, headers={"Host": "localhost", **headers})
    return {
        label: value - before.get(label, 0)
        for label, value in counts().items()
        if value != before.get(label, 0)
    }


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("status", "headers", "outcome"),
    [
        (200, {}, "ok"),
        (404, {"Foldlake-Reason": "unknown-key"}, "unknown-key"),
        (404, {"Foldlake-Reason": "unknown-model"}, "unknown-model"),
        (503, {"Foldlake-Reason": "not-up-to-bound"}, "not-up-to-bound"),
        (404, {"Foldlake-Reason": "a-new-reason"}, "other"),
        (400, {}, "other"),
    ],
)
def test_the_outcome_of_another_node_is_counted(
    settings: Settings, path: str, status: int, headers: dict[str, str], outcome: str
) -> None:
    with other_node(lambda _: (status, headers, "{}")) as url:
        node = StopsNode(settings, url)
        node.store("stops", 1, {})
        node.publish()

        assert counted(node, path.format(OTHER), {}) == {(outcome, "peer"): 1}


@pytest.mark.parametrize(
    ("path", "key", "outcome"),
    [(PATHS[0], OWN, "ok"), (PATHS[1], OWN, "ok"), (PATHS[0], window_keys("b", 40, 0)[0], "unknown-key")],
)
def test_a_request_of_another_node_is_counted_there(
    settings: Settings, path: str, key: str, outcome: str
) -> None:
    node = StopsNode(settings)
    node.store("stops", 1, {OWN: {"n": 1, "lat": 0.0, "lon": 0.0}})
    node.publish()

    assert counted(node, path.format(key), {"Foldlake-Hop": "any"}) == {}
    assert counted(node, path.format(key), {}) == {(outcome, "local"): 1}
