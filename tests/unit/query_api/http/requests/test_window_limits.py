"""A window lookup of a range that is too long is refused before its windows are made."""

import json
import tracemalloc

import pytest

from include.settings import Settings
from tests.unit.query_api.http.parcels import Node, parcels_settings

PATH = "/api/browsers.getWindows"
MAX_PEAK_BYTES = 2_000_000


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Node:
    given = parcels_settings(tmp_path_factory.mktemp("node"))
    return Node(Settings.of(home=given.home, read_models_dir=given.read_models_dir, systems=("logs",)))


@pytest.mark.parametrize(
    ("since", "until", "slug"),
    [
        ("2026-01-01T00:00:00Z", "2026-05-01T00:00:00Z", "range-too-long"),
        ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "range-too-long"),
        ("0001-01-01", "9999-12-31", "range-too-long"),
        ("2026-01-01T00:00:00+23:59", "2026-01-01T00:00:00-23:59", "range-too-long"),
        ("0001-01-01T00:00:00+14:00", "0001-01-02T00:00:00Z", "invalid-from"),
        ("9999-12-31T00:00:00Z", "9999-12-31T23:59:59-14:00", "invalid-to"),
        ("10000-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "invalid-from"),
        ("0000-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "invalid-from"),
        ("nan", "2026-01-01T00:00:00Z", "invalid-from"),
        ("2026-01-01T00:00:00Z", "2" * 5000, "invalid-to"),
        ("2026-01-01T00:00:00Z", "", "invalid-to"),
    ],
)
def test_an_impossible_range_costs_nothing(node: Node, since: str, until: str, slug: str) -> None:
    given = {"browserHash": "a", "from": since, "to": until}
    node.flask.get(PATH, query_string=given)  # what the first request imports and caches
    tracemalloc.start()
    answer = node.flask.get(PATH, query_string=given)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (answer.status_code, json.loads(answer.text)["type"]) == (400, f"urn:foldlake:problem:{slug}")
    assert peak < MAX_PEAK_BYTES


def test_an_empty_range_at_the_end_of_time_is_accepted(node: Node) -> None:
    given = {"browserHash": "a", "from": "9999-12-31T23:59:59Z", "to": "9999-12-31T23:59:59Z"}

    answer = node.flask.get(PATH, query_string=given)

    # The range is accepted; the node has no version of the read model whose windows it could list.
    assert json.loads(answer.text)["type"] == "urn:foldlake:problem:unknown-model"
